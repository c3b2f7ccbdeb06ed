-- Parks an event. Another event may already be parked for this version. The new event replaces it
-- in two cases. In the first case, the parked event cannot be applied and the new event waits for a
-- missing version. In the second case, both wait and the new event is earlier in the same
-- partition. This worker may not know the parked event, because the worker of another partition may
-- have parked it.
INSERT INTO {parked} AS p
    ({projection_column}account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers)
VALUES ({projection_value}$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT ({projection_column}account_id, version) DO UPDATE
SET class = EXCLUDED.class, event_id = EXCLUDED.event_id, expected_version = EXCLUDED.expected_version,
    topic = EXCLUDED.topic, partition = EXCLUDED.partition, "offset" = EXCLUDED."offset",
    record_timestamp = EXCLUDED.record_timestamp, replays = EXCLUDED.replays,
    key = EXCLUDED.key, value = EXCLUDED.value, headers = EXCLUDED.headers
WHERE EXCLUDED.class = 'version_gap' AND (p.class <> 'version_gap'
    OR p.topic = EXCLUDED.topic AND p.partition = EXCLUDED.partition AND p."offset" > EXCLUDED."offset");
