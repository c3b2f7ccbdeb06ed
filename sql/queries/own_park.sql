-- park.sql of a projection of one's own ($1).
INSERT INTO projection_parked_event
    (projection, account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (projection, account_id, version) DO NOTHING;
