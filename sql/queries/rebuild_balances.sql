-- Returns the balances of accounts. The search_path decides whether the live or the shadow table is
-- read.
SELECT account_id, currency, balance::text FROM account_balance WHERE account_id = ANY ($1::text[]);
