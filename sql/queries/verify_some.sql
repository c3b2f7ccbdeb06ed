-- Returns some accounts, sorted by the bytes of the id. See verify_accounts.sql.
SELECT coalesce(b.account_id, h.account_id),
       b.account_id IS NOT NULL,
       coalesce(b.version, 0),
       coalesce(b.balance::text, '')
FROM unnest($1::text[]) AS k (account_id)
LEFT JOIN account_balance b ON b.account_id = k.account_id
LEFT JOIN account_hold h ON h.account_id = k.account_id AND b.account_id IS NULL
    AND h.account_id = ANY ($1::text[]) -- without this list, the view would be computed for all accounts
WHERE b.account_id IS NOT NULL OR h.account_id IS NOT NULL
ORDER BY k.account_id COLLATE "C";
