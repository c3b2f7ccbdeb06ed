-- insert_balance.sql of a projection of one's own ($1): without money.
INSERT INTO projection_account (projection, account_id, version, last_event_id, last_event_at, updated_at)
SELECT $1::text, r.account_id, r.version, nullif(r.last_event_id, ''), r.last_event_at, now()
FROM unnest($2::text[], $3::text[], $4::int8[], $5::int2[], $6::int8[], $7::bool[], $8::text[], $9::timestamptz[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at)
ON CONFLICT (projection, account_id) DO NOTHING;
