-- Inserts events as rows, sorted by key so that concurrent writers cannot deadlock. The amount is a
-- parameter in minor units. The parameter is 0 if the event has no amount. The multiplication gives
-- the result exactly as many decimals as the currency has.
INSERT INTO account_statement (account_id, version, event_id, event_type, amount, currency, occurred_at, correlation_id,
                               source_partition, source_offset)
SELECT r.account_id, r.version, r.event_id, r.event_type,
       nullif(r.minor, 0) * (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1],
       nullif(r.currency, ''),
       r.occurred_at,
       nullif(r.correlation_id, ''),
       r.source_partition,
       r.source_offset
FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::int8[], $6::int2[], $7::text[], $8::timestamptz[], $9::text[],
            $10::int4[], $11::int8[])
    AS r (account_id, version, event_id, event_type, minor, digits, currency, occurred_at, correlation_id, source_partition, source_offset)
ON CONFLICT (account_id, version) DO NOTHING;
