-- The version each account is at, and its last event.
SELECT account_id, version, coalesce(last_event_id, '')
FROM account_balance;
