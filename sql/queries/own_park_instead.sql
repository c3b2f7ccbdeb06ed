-- park_instead.sql of a custom projection ($1).
UPDATE projection_parked_event
SET class = $4, event_id = $5, expected_version = $6, topic = $7, partition = $8, "offset" = $9,
    record_timestamp = $10, replays = $11, key = $12, value = $13, headers = $14
WHERE projection = $1 AND account_id = $2 AND version = $3 AND class <> 'version_gap';
