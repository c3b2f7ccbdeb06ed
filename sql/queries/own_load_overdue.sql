-- load_overdue.sql of a projection of one's own ($1).
SELECT DISTINCT p.partition
FROM projection_parked_event p
JOIN projection_account b ON b.projection = $1 AND b.account_id = p.account_id AND p.version = b.version + 1
WHERE p.projection = $1 AND p.topic = $2 AND p.partition = ANY ($3::int4[]) AND p.class = 'version_gap'
  AND greatest(b.updated_at, p.parked_at) <= clock_timestamp() - make_interval(secs => $4::float8);
