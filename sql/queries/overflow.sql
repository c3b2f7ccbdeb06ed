-- Stores, for each account, the range of events beyond the park limit. Events that are already
-- parked are left out.
INSERT INTO {overflow} AS o
    ({projection_column}account_id, lowest_version, highest_version, events, expected_version, topic, partition, first_offset, last_offset, first_version)
SELECT {projection_value}v.account_id, min(v.version), max(v.version), count(*), min(v.expected_version),
       min(v.topic), CASE WHEN min(v.topic) = max(v.topic) AND min(v.partition) = max(v.partition) THEN nullif(min(v.partition), -1) END,
       min(v."offset"), max(v."offset"), min(v.version)
FROM unnest($1::text[], $2::int8[], $3::int8[], $4::text[], $5::int4[], $6::int8[])
    AS v (account_id, version, expected_version, topic, partition, "offset")
WHERE (v.account_id, v.version) NOT IN (
    SELECT p.account_id, p.version
    FROM unnest($1::text[], $2::int8[]) AS k (account_id, version)
    JOIN {parked} p ON {of_p}p.account_id = k.account_id AND p.version = k.version)
GROUP BY v.account_id
ORDER BY v.account_id
ON CONFLICT ({projection_column}account_id) DO UPDATE
SET lowest_version  = least(o.lowest_version, EXCLUDED.lowest_version),
    highest_version = greatest(o.highest_version, EXCLUDED.highest_version),
    events          = o.events + EXCLUDED.events,
    partition       = CASE WHEN o.topic = EXCLUDED.topic AND o.partition = EXCLUDED.partition THEN o.partition END,
    first_offset    = least(o.first_offset, EXCLUDED.first_offset),
    last_offset     = greatest(o.last_offset, EXCLUDED.last_offset),
    first_version   = least(o.first_version, EXCLUDED.first_version);
