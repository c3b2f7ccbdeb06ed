-- repair_lock_accounts.sql of a projection of one's own ($1).
SELECT account_id FROM projection_account
WHERE projection = $1 AND account_id = ANY ($2::text[])
ORDER BY account_id COLLATE "C"
FOR UPDATE;
