-- Stores events beyond the park limit as a range, unless they are parked.
INSERT INTO {overflow} AS o ({projection_column}account_id, lowest_version, highest_version, events, expected_version)
SELECT {projection_value}v.account_id, min(v.version), max(v.version), count(*), min(v.expected_version)
FROM unnest($1::text[], $2::int8[], $3::int8[]) AS v (account_id, version, expected_version)
WHERE (v.account_id, v.version) NOT IN (
    SELECT p.account_id, p.version
    FROM unnest($1::text[], $2::int8[]) AS k (account_id, version)
    JOIN {parked} p ON {of_p}p.account_id = k.account_id AND p.version = k.version)
GROUP BY v.account_id
ORDER BY v.account_id
ON CONFLICT ({projection_column}account_id) DO UPDATE
SET lowest_version  = least(o.lowest_version, EXCLUDED.lowest_version),
    highest_version = greatest(o.highest_version, EXCLUDED.highest_version),
    events          = o.events + EXCLUDED.events;
