-- Locks the accounts that have a row. Consumers lock accounts in the same order, so a deadlock is
-- not possible.
SELECT account_id FROM {account}
WHERE {of}account_id = ANY ($1::text[])
ORDER BY account_id COLLATE "C"
FOR UPDATE;
