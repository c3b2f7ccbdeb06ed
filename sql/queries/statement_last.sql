-- Returns the highest version of an account that has a row. It is null if there is none.
SELECT max(version) FROM account_statement WHERE account_id = $1;
