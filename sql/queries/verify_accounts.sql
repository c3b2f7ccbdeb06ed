-- Returns all accounts, including those that only wait for their first version, sorted by the bytes
-- of the id. The last column says whether the account was written at or after the given time. Such
-- an account may also have got its opening after that time.
SELECT coalesce(b.account_id, h.account_id) AS account_id,
       b.account_id IS NOT NULL,
       coalesce(b.version, 0),
       coalesce(b.balance::text, ''),
       coalesce(coalesce(b.updated_at, h.since) >= $1::timestamptz, false)
FROM account_balance b
FULL JOIN account_hold h ON h.account_id = b.account_id
ORDER BY coalesce(b.account_id, h.account_id) COLLATE "C";
