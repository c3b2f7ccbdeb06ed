-- The account's parked event of one version.
SELECT class, event_id, topic, partition, "offset"
FROM {parked}
WHERE {of}account_id = $1 AND version = $2;
