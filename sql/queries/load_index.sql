-- The version each account is at, and its last event: of $1 accounts at most.
SELECT account_id, version, coalesce(last_event_id, '')
FROM account_balance
LIMIT $1;
