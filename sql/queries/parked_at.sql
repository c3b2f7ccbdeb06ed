-- Returns the parked event of one version of an account. If this version may be beyond the park limit,
-- only the class is known.
SELECT class, event_id, topic, partition, "offset"
FROM {parked}
WHERE {of}account_id = $1 AND version = $2
UNION ALL
SELECT 'version_gap', '', '', 0, 0
FROM {overflow}
WHERE {of}account_id = $1 AND $2 BETWEEN lowest_version AND highest_version
ORDER BY topic DESC
LIMIT 1;
