-- update_balance.sql for accounts of one shard of Citus: it is the list of accounts that tells
-- which one, and nothing is sent to the others.
UPDATE account_balance AS t
SET currency      = nullif(r.currency, ''),
    balance       = r.minor * (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1],
    version       = r.version,
    status        = CASE WHEN r.closed THEN 'closed' ELSE 'open' END,
    last_event_id = nullif(r.last_event_id, ''),
    last_event_at = r.last_event_at,
    updated_at    = now()
FROM unnest($1::text[], $2::text[], $3::int8[], $4::int2[], $5::int8[], $6::bool[], $7::text[], $8::timestamptz[], $9::int8[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at, base)
WHERE t.account_id = ANY ($1) AND t.account_id = r.account_id AND t.version = r.base AND t.version < r.version;
