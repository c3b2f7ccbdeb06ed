-- Declares the cursor with the events that the SQL of a custom projection reads as new_events. The
-- events are sorted by account and version. See migration 00015.
DECLARE projector_new_events SCROLL CURSOR FOR
SELECT e.account_id, e.version, e.event_id, e.event_type, e.occurred_at, nullif(e.correlation_id, ''),
       e.data::jsonb, e.topic, e.partition, e."offset"
FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::int4[], $10::int8[])
    AS e (account_id, version, event_id, event_type, occurred_at, correlation_id, data, topic, partition, "offset");
