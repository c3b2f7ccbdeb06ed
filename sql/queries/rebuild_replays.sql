-- Dead letters that somebody has applied in a projection ($2), in the order of the trail; of an older
-- row it is not known in which. $1 is the result that the trail has of them.
SELECT account_id, coalesce(version, 0), altered, topic, partition, "offset"
FROM dlq_action AS a
WHERE action = 'replay' AND result = $1 AND coalesce(a.projection, $2) = $2
  AND account_id IS NOT NULL AND topic IS NOT NULL
ORDER BY id;
