-- An account as readers of the database see it.
SELECT coalesce(currency, ''), balance::text, version, status, coalesce(last_event_id, ''), last_event_at
FROM account_balance
WHERE account_id = $1;
