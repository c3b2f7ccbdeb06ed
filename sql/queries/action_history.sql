-- Returns what people did with records of a DLQ topic: whether a record is discarded, and how often
-- it was replayed to the database. A later replay that applied the record cancels a discard. The
-- topic, partition and offset of the original record must match too, because a DLQ topic that was
-- deleted and created again reuses offsets.
SELECT k.dlq_partition, k.dlq_offset,
       coalesce(max(a.id) FILTER (WHERE a.action = 'discard'), 0)
           > coalesce(max(a.id) FILTER (WHERE a.action = 'replay' AND starts_with(a.result, 'applied')), 0),
       count(*) FILTER (WHERE a.action = 'replay')
FROM unnest($2::int4[], $3::int8[], $4::text[], $5::int4[], $6::int8[])
    AS k (dlq_partition, dlq_offset, topic, partition, place)
JOIN dlq_action a ON a.dlq_topic = $1 AND a.dlq_partition = k.dlq_partition AND a.dlq_offset = k.dlq_offset
                 AND a.topic = k.topic AND a.partition = k.partition AND a."offset" = k.place
GROUP BY k.dlq_partition, k.dlq_offset;
