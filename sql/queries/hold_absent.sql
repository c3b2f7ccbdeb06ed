-- How many of the accounts have no row, as ever. One that gets its row at this very
-- moment finds what is parked of it within seconds: see load_stranded.sql.
SELECT count(*)
FROM unnest($1::text[]) AS r (account_id)
WHERE NOT EXISTS (SELECT FROM account_balance b WHERE b.account_id = r.account_id);
