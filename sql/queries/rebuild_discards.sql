-- The places in a topic ($2) of the events that were discarded in a projection ($1): a replay of the
-- same place since then has brought the event back.
SELECT DISTINCT d.partition, d."offset"
FROM dlq_action d
WHERE d.action = 'discard' AND d.topic = $2 AND d."offset" IS NOT NULL AND d.projection = $1
  AND NOT EXISTS (
      SELECT FROM dlq_action r
      WHERE r.action = 'replay' AND r.id > d.id AND r.projection = $1 AND starts_with(r.result, 'applied')
        AND r.topic = d.topic AND r.partition = d.partition AND r."offset" = d."offset");
