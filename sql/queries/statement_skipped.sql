-- Versions of an account that were passed over on purpose.
SELECT version FROM account_skipped WHERE account_id = $1 ORDER BY version;
