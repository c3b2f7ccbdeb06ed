-- Returns the events of a topic ($2) that were discarded in a projection ($1), with their
-- partitions and offsets. An event that a later replay applied does not count as discarded. Several
-- events of one record have the same offset.
SELECT DISTINCT coalesce(d.account_id, ''), coalesce(d.version, 0), d.altered, d.topic, d.partition, d."offset"
FROM dlq_action d
WHERE d.action = 'discard' AND d.topic = $2 AND d."offset" IS NOT NULL AND d.projection = $1
  AND NOT EXISTS (
      SELECT FROM dlq_action r
      WHERE r.action = 'replay' AND r.id > d.id AND r.projection = $1 AND starts_with(r.result, 'applied')
        AND r.topic = d.topic AND r.partition = d.partition AND r."offset" = d."offset"
        AND (d.account_id IS NULL OR r.account_id = d.account_id AND r.version = d.version));
