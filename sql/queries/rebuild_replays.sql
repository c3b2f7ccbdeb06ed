-- Returns dead letters that a person has applied in a projection ($2), in the order of the audit
-- trail. Rows that older versions of the program have written may have no projection. The result $1
-- selects the replays that were applied in this projection.
SELECT account_id, coalesce(version, 0), altered, topic, partition, "offset"
FROM dlq_action AS a
WHERE action = 'replay' AND result = $1 AND coalesce(a.projection, $2) = $2
  AND account_id IS NOT NULL AND topic IS NOT NULL
ORDER BY id;
