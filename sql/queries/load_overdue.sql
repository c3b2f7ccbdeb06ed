-- Those of the given partitions that hold a parked event whose turn has come and that
-- nobody applies. The one before it was applied by the worker of another partition,
-- which did not know what waits. Who heals an account writes it again and again, so only
-- what has been quiet for some seconds counts.
SELECT DISTINCT p.partition
FROM {parked} p
JOIN {account} b ON {of_b}b.account_id = p.account_id AND p.version = b.version + 1
WHERE {of_p}p.topic = $1 AND p.partition = ANY ($2::int4[]) AND p.class = 'version_gap'
  AND greatest(b.updated_at, p.parked_at) <= clock_timestamp() - make_interval(secs => $3::float8);
