-- Locks the accounts that have a row, in the order in which consumers do.
SELECT account_id FROM {account}
WHERE {of}account_id = ANY ($1::text[])
ORDER BY account_id COLLATE "C"
FOR UPDATE;
