-- update_balance.sql of a projection of one's own ($1): without money.
UPDATE projection_account AS t
SET version       = r.version,
    last_event_id = nullif(r.last_event_id, ''),
    last_event_at = r.last_event_at,
    updated_at    = now()
FROM unnest($2::text[], $3::text[], $4::int8[], $5::int2[], $6::int8[], $7::bool[], $8::text[], $9::timestamptz[], $10::int8[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at, base)
WHERE t.projection = $1 AND t.account_id = r.account_id AND t.version = r.base AND t.version < r.version;
