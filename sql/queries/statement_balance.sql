-- Returns the opening and the balance of an account. The statement of the account starts with the
-- opening. The sum of the statement is compared with the balance. No row means that the account has
-- no balance.
SELECT version, balance::text, coalesce(currency, ''), opening_version, coalesce(opening_balance::text, ''), coalesce(opening_currency, '')
FROM account_statement_balance
WHERE account_id = $1;
