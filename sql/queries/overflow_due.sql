-- Returns accounts whose next event may be one of the events beyond the park limit in the
-- partitions $2. Accounts whose next event is parked are left out, because their parked events are
-- applied first. The query returns at most 4 accounts, sorted by partition and offset.
SELECT o.account_id, b.version, o.partition, o.lowest_version, o.highest_version, o.events, o.first_offset, o.last_offset, o.first_version
FROM {overflow} o
JOIN {account} b ON {of_b}b.account_id = o.account_id
LEFT JOIN {parked} p ON {of_p}p.account_id = o.account_id AND p.version = nullif(b.version, 9223372036854775807) + 1
WHERE {of_o}o.topic = $1 AND o.partition = ANY ($2::int4[]) AND o.first_offset IS NOT NULL AND o.last_offset IS NOT NULL
  AND o.first_version <= nullif(b.version, 9223372036854775807) + 1 AND o.highest_version > b.version AND p.account_id IS NULL
ORDER BY o.partition, o.first_offset
LIMIT 4;
