-- Returns the highest version of an account that has a row. The result is null if the account has
-- no row.
SELECT max(version) FROM account_statement WHERE account_id = $1;
