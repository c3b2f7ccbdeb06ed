-- The versions the given accounts have now.
SELECT account_id, version FROM account_balance WHERE account_id = ANY ($1::text[]);
