-- Returns the parked event of one version of an account.
SELECT class, event_id, topic, partition, "offset"
FROM {parked}
WHERE {of}account_id = $1 AND version = $2;
