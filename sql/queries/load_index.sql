-- Returns the version and the last event of accounts, for at most $1 accounts.
SELECT account_id, version, coalesce(last_event_id, '')
FROM account_balance
LIMIT $1;
