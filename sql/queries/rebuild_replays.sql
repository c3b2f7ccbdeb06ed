-- Dead letters that somebody has applied: those that were corrected, and those that were not only
-- early, in a projection ($2); of an older row it is not known in which. $1 is the result that the
-- trail has of them.
SELECT account_id, coalesce(version, 0), class, altered, topic, partition, "offset"
FROM dlq_action AS a
WHERE action = 'replay' AND result = $1 AND coalesce(a.projection, $2) = $2
  AND (altered OR class IS DISTINCT FROM 'version_gap')
  AND account_id IS NOT NULL AND topic IS NOT NULL;
