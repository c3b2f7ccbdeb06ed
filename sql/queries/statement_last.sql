-- Returns the highest version for which an account has a row in its statement. The result is null
-- if there is no row.
SELECT max(version) FROM account_statement WHERE account_id = $1;
