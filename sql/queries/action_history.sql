-- Returns what people did with records of a DLQ topic: whether a record is discarded, and how often
-- it was replayed to the database. A later replay that applied the record cancels a discard. The
-- topic, partition and offset of the original record must match too, because a DLQ topic that was
-- deleted and created again reuses offsets.
--
-- Each record is found by its key. As a plain join, PostgreSQL compared every action of the topic
-- with every record while its statistics were from before the first action of the topic.
SELECT k.dlq_partition, k.dlq_offset, a.discarded, a.replays
FROM unnest($2::int4[], $3::int8[], $4::text[], $5::int4[], $6::int8[])
    AS k (dlq_partition, dlq_offset, topic, partition, place)
CROSS JOIN LATERAL (
    SELECT coalesce(max(id) FILTER (WHERE action = 'discard'), 0)
               > coalesce(max(id) FILTER (WHERE action = 'replay' AND starts_with(result, 'applied')), 0) AS discarded,
           count(*) FILTER (WHERE action = 'replay') AS replays,
           count(*) AS actions
    FROM dlq_action
    WHERE dlq_topic = $1 AND dlq_partition = k.dlq_partition AND dlq_offset = k.dlq_offset
      AND topic = k.topic AND partition = k.partition AND "offset" = k.place
) AS a
WHERE a.actions > 0;
