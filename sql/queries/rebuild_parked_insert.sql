-- Parks what waits behind the holes of these accounts, as much as the limit allows, in
-- the order in which it came. It waits since then, or since now where that is not known
-- or cannot be: to_timestamp fails (22008) beyond the year 294276.
INSERT INTO parked_event
    (account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays,
     key, value, headers, parked_at)
SELECT k.account_id, k.version, k.class, k.event_id, k.expected_version, k.topic, k.partition, k."offset",
       k.record_timestamp, k.replays, k.key, k.value, k.headers,
       CASE WHEN k.record_timestamp BETWEEN 1 AND extract(epoch FROM now()) * 1000
            THEN to_timestamp(k.record_timestamp / 1000.0) ELSE now() END
FROM (
    SELECT p.*, row_number() OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS n
    FROM projector_rebuild.settled d
    JOIN projector_rebuild.parked_event p ON p.account_id = d.account_id AND (d.version IS NULL OR p.version > d.version)
) AS k
WHERE k.n <= $1
ORDER BY k.account_id, k.version
ON CONFLICT (account_id, version) DO NOTHING;
