-- Returns an account with the values that readers of the database see. Only the balance projection
-- has money and a status.
SELECT
    {balances} coalesce(currency, ''), balance::text, version, status,
    {custom} '', '', version, '',
    coalesce(last_event_id, ''), last_event_at
FROM {account}
WHERE {of}account_id = $1;
