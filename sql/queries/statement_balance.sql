-- What an account's statement is held against. No row: it has no balance.
SELECT version, balance::text, coalesce(currency, '') FROM account_statement_balance WHERE account_id = $1;
