-- Returns the rows of the given accounts. Only the balance projection has money and a status.
SELECT account_id,
    {balances} coalesce(currency, ''), balance, version, status = 'closed',
    {custom} '', 0::numeric, version, false,
    coalesce(last_event_id, ''), last_event_at
FROM {account}
WHERE {of}account_id = ANY ($1::text[]);
