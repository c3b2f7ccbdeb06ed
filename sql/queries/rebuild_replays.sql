-- Dead letters that somebody has applied and that were more than early; $1 is the result that the trail has of them.
SELECT account_id, coalesce(version, 0), class, topic, partition, "offset"
FROM dlq_action
WHERE action = 'replay' AND result = $1 AND class IS DISTINCT FROM 'version_gap'
  AND account_id IS NOT NULL AND topic IS NOT NULL;
