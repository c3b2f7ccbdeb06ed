-- Inserts openings (initial states) of accounts, sorted by account id. If an account already has an
-- opening, only a higher version replaces it.
INSERT INTO account_opening AS t
    (account_id, version, balance, currency, status, last_event_id, source, actor, reason, opened_at)
SELECT r.account_id,
       r.version,
       r.minor * (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1],
       nullif(r.currency, ''),
       CASE WHEN r.closed THEN 'closed' ELSE 'open' END,
       nullif(r.last_event_id, ''),
       $9, $10, $11,
       now()
FROM unnest($1::text[], $2::text[], $3::int8[], $4::int2[], $5::int8[], $6::bool[], $7::text[], $8::timestamptz[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at)
ON CONFLICT (account_id) DO UPDATE
SET version       = EXCLUDED.version,
    balance       = EXCLUDED.balance,
    currency      = EXCLUDED.currency,
    status        = EXCLUDED.status,
    last_event_id = EXCLUDED.last_event_id,
    source        = EXCLUDED.source,
    actor         = EXCLUDED.actor,
    reason        = EXCLUDED.reason,
    opened_at     = EXCLUDED.opened_at
WHERE t.version < EXCLUDED.version;
