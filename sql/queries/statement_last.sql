-- The highest version of an account that has an entry; null: there is none.
SELECT max(version) FROM account_statement WHERE account_id = $1;
