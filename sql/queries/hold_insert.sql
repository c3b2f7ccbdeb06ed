-- Parks the waiting events of accounts ($1) in the order of their partitions and offsets, up to the
-- park limit. The waiting time of an event is counted from the time of its record. If that time is
-- unknown or in the future, it is counted from now. The condition also prevents an error, because
-- to_timestamp fails (22008) after the year 294276.
INSERT INTO {parked}
    ({projection_column}account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays,
     key, value, headers, parked_at)
SELECT {projection_value}k.account_id, k.version, k.class, k.event_id, k.expected_version, k.topic, k.partition, k."offset",
       k.record_timestamp, k.replays, k.key, k.value, k.headers,
       CASE WHEN k.record_timestamp BETWEEN 1 AND extract(epoch FROM now()) * 1000
            THEN to_timestamp(k.record_timestamp / 1000.0) ELSE now() END
FROM {kept} AS k
WHERE k.fits AND k.account_id = ANY ($1::text[])
ORDER BY k.account_id COLLATE "C", k.version
ON CONFLICT DO NOTHING;
