-- The account's parked events above a version, in order.
SELECT version, class, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers
FROM parked_event
WHERE account_id = $1 AND version > $2
ORDER BY version
LIMIT $3;
