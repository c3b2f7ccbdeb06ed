-- Of two events parked for one version the first stays.
INSERT INTO parked_event
    (account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (account_id, version) DO NOTHING;
