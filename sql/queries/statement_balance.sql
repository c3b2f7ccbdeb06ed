-- What an account's statement begins with and is held against. No row: it has no balance.
SELECT version, balance::text, coalesce(currency, ''), opening_version, coalesce(opening_balance::text, ''), coalesce(opening_currency, '')
FROM account_statement_balance
WHERE account_id = $1;
