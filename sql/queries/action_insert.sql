-- Adds a row to the audit trail for each of the given actions. An empty text means that the value
-- is unknown. If the topic is empty, the partition and the offset are unknown too.
INSERT INTO dlq_action
    (action, account_id, version, topic, partition, "offset", dlq_topic, dlq_partition, dlq_offset, class, actor, reason, result,
     altered, value_sha256, original_sha256, consumer_group, projection, previous_event_id)
SELECT a.action, nullif(a.account_id, ''), a.version, nullif(a.topic, ''),
       CASE WHEN a.topic <> '' THEN a.partition END, CASE WHEN a.topic <> '' THEN a.place END,
       nullif(a.dlq_topic, ''),
       CASE WHEN a.dlq_topic <> '' THEN a.dlq_partition END, CASE WHEN a.dlq_topic <> '' THEN a.dlq_offset END,
       nullif(a.class, ''), a.actor, nullif(a.reason, ''), a.result,
       a.altered, nullif(a.value_sha256, ''), nullif(a.original_sha256, ''), nullif(a.consumer_group, ''), nullif(a.projection, ''),
       nullif(a.previous_event_id, '')
FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::int4[], $6::int8[], $7::text[], $8::int4[], $9::int8[],
            $10::text[], $11::text[], $12::text[], $13::text[], $14::bool[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[])
    WITH ORDINALITY AS a (action, account_id, version, topic, partition, place, dlq_topic, dlq_partition, dlq_offset,
                          class, actor, reason, result, altered, value_sha256, original_sha256, consumer_group, projection, previous_event_id, n)
ORDER BY a.n;
