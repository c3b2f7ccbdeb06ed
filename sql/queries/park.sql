-- Parks an event. An event that is already parked for this version is not replaced.
INSERT INTO {parked}
    ({projection_column}account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers)
VALUES ({projection_value}$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT ({projection_column}account_id, version) DO NOTHING;
