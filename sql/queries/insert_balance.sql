-- Inserts accounts that had no row when they were read, sorted by account id so that concurrent
-- writers cannot deadlock. If another writer has inserted the row of an account meanwhile, the
-- account is not changed, because its new state was computed without this row. The balance is a
-- parameter in minor units. The multiplication gives the result exactly as many decimals as the
-- currency has. Only the balance projection has money and a status.
INSERT INTO {account}
    ({projection_column}account_id,
     {balances} currency, balance, status,
     version, last_event_id, last_event_at, updated_at)
SELECT {projection_value}r.account_id,
       {balances} nullif(r.currency, ''),
       {balances} r.minor * (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1],
       {balances} CASE WHEN r.closed THEN 'closed' ELSE 'open' END,
       r.version,
       nullif(r.last_event_id, ''),
       r.last_event_at,
       now()
FROM unnest($1::text[], $2::text[], $3::int8[], $4::int2[], $5::int8[], $6::bool[], $7::text[], $8::timestamptz[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at)
ON CONFLICT ({projection_column}account_id) DO NOTHING;
