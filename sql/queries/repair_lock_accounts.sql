-- Locks the accounts that have a row.
SELECT account_id FROM account_balance
WHERE account_id = ANY ($1::text[])
ORDER BY account_id
FOR UPDATE;
