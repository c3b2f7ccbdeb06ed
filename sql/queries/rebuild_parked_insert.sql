-- Parks what waits behind the holes of these accounts, as much as the limit allows, in
-- the order in which it came. It waits since then.
INSERT INTO parked_event
    (account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays,
     key, value, headers, parked_at)
SELECT k.account_id, k.version, k.class, k.event_id, k.expected_version, k.topic, k.partition, k."offset",
       k.record_timestamp, k.replays, k.key, k.value, k.headers, least(now(), to_timestamp(k.record_timestamp / 1000.0))
FROM (
    SELECT p.*, row_number() OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS n
    FROM projector_rebuild.settled d
    JOIN projector_rebuild.parked_event p ON p.account_id = d.account_id AND (d.version IS NULL OR p.version > d.version)
) AS k
WHERE k.n <= $1
ORDER BY k.account_id, k.version
ON CONFLICT (account_id, version) DO NOTHING;
