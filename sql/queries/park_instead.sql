-- Replaces a parked event that cannot be applied. The new event has the same version and waits for
-- a missing version.
UPDATE {parked}
SET class = $3, event_id = $4, expected_version = $5, topic = $6, partition = $7, "offset" = $8,
    record_timestamp = $9, replays = $10, key = $11, value = $12, headers = $13
WHERE {of}account_id = $1 AND version = $2 AND class <> 'version_gap';
