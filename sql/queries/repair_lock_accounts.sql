-- Locks the accounts that have a row. The order is the same as that of consumers, to prevent
-- deadlocks.
SELECT account_id FROM {account}
WHERE {of}account_id = ANY ($1::text[])
ORDER BY account_id COLLATE "C"
FOR UPDATE;
