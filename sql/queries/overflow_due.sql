-- Returns accounts whose next event may be one of the events beyond the park limit in the
-- partitions $2. An account without a row has the version $3. Accounts whose next event is parked
-- are left out, because their parked events are applied first. If that event cannot be applied, an
-- event beyond the limit may replace it. The query returns at most 4 accounts, sorted by partition
-- and offset.
SELECT d.account_id, d.version, d.partition, d.lowest_version, d.highest_version, d.events, d.first_offset, d.last_offset, d.first_version
FROM (SELECT o.*, coalesce(b.version, $3::int8) AS version
    FROM {overflow} o
    LEFT JOIN {account} b ON {of_b}b.account_id = o.account_id
    WHERE {of_o}o.topic = $1 AND o.partition = ANY ($2::int4[]) AND o.first_offset IS NOT NULL AND o.last_offset IS NOT NULL) d
LEFT JOIN {parked} p ON {of_p}p.account_id = d.account_id AND p.version = nullif(d.version, 9223372036854775807) + 1 AND p.class = 'version_gap'
WHERE d.first_version <= nullif(d.version, 9223372036854775807) + 1 AND d.highest_version > d.version AND p.account_id IS NULL
ORDER BY d.partition, d.first_offset
LIMIT 4;
