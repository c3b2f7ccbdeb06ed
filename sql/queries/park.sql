-- Of two events that wait for one version the first stays; one that waits takes the
-- place of one that cannot be applied. The gap is as old as it was.
INSERT INTO parked_event AS p
    (account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (account_id, version) DO UPDATE
SET class            = EXCLUDED.class,
    event_id         = EXCLUDED.event_id,
    topic            = EXCLUDED.topic,
    partition        = EXCLUDED.partition,
    "offset"         = EXCLUDED."offset",
    record_timestamp = EXCLUDED.record_timestamp,
    replays          = EXCLUDED.replays,
    key              = EXCLUDED.key,
    value            = EXCLUDED.value,
    headers          = EXCLUDED.headers
WHERE p.class <> 'version_gap' AND EXCLUDED.class = 'version_gap';
