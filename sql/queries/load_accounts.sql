-- The balance rows of the given accounts.
SELECT account_id, coalesce(currency, ''), balance, version, status = 'closed', coalesce(last_event_id, ''), last_event_at
FROM account_balance
WHERE account_id = ANY ($1::text[]);
