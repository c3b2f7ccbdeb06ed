-- Returns dead letters that a person has applied in a projection ($2), in the order of the audit
-- trail. Old rows do not have a projection. The audit trail marks the rows of this projection with
-- the result $1.
SELECT account_id, coalesce(version, 0), altered, topic, partition, "offset"
FROM dlq_action AS a
WHERE action = 'replay' AND result = $1 AND coalesce(a.projection, $2) = $2
  AND account_id IS NOT NULL AND topic IS NOT NULL
ORDER BY id;
