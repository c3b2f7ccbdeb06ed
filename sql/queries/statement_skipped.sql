-- Returns the versions of an account that a person has skipped.
SELECT version FROM account_skipped WHERE account_id = $1 ORDER BY version;
