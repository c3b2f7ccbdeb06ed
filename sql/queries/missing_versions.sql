-- Returns the versions that accounts wait for, with the oldest gap first. A gap ends before the
-- first parked event. If no event of the account is parked, the gap ends with the highest version
-- beyond the park limit. An event that exists but cannot be applied does not count as missing. An
-- account belongs to the partition of its parked events. An account whose waiting events are all
-- beyond the park limit belongs to partition 0. A gap whose time is in the future began before the
-- clock was set back, so its age is unknown, and it counts as old enough.
SELECT h.account_id, h.expected_version, coalesce(p.version - 1, o.highest_version)
FROM account_hold h
LEFT JOIN LATERAL (
    SELECT e.version, e.topic, e.partition
    FROM parked_event e
    WHERE e.account_id = h.account_id AND e.version >= h.expected_version
    ORDER BY e.version
    LIMIT 1
) AS p ON true
LEFT JOIN park_overflow o ON o.account_id = h.account_id
WHERE coalesce(p.version - 1, o.highest_version) >= h.expected_version
  AND (h.since <= now() - make_interval(secs => $1::float8) OR h.since > now())
  AND ($2::text = '' OR h.account_id = $2)
  AND ($3::text = '' OR coalesce(p.topic, $3) = $3 AND coalesce(p.partition, 0) = ANY ($4::int4[]))
ORDER BY h.since, h.account_id;
