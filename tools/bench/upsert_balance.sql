-- This statement writes new states of accounts. It sorts them by account id, so that concurrent
-- writers cannot deadlock. A version never decreases. The balance arrives in minor units. The
-- multiplication gives the balance exactly the currency's number of decimals.
INSERT INTO account_balance AS t
    (account_id, currency, balance, version, status, last_event_id, last_event_at, updated_at)
SELECT r.account_id,
       nullif(r.currency, ''),
       r.minor * (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1],
       r.version,
       CASE WHEN r.closed THEN 'closed' ELSE 'open' END,
       nullif(r.last_event_id, ''),
       r.last_event_at,
       now()
FROM unnest($1::text[], $2::text[], $3::int8[], $4::int2[], $5::int8[], $6::bool[], $7::text[], $8::timestamptz[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at)
ON CONFLICT (account_id) DO UPDATE
SET currency      = EXCLUDED.currency,
    balance       = EXCLUDED.balance,
    version       = EXCLUDED.version,
    status        = EXCLUDED.status,
    last_event_id = EXCLUDED.last_event_id,
    last_event_at = EXCLUDED.last_event_at,
    updated_at    = EXCLUDED.updated_at
WHERE t.version < EXCLUDED.version;
