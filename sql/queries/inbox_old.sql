-- Returns how many markers of a handler are older than an interval, but at most $3. Pruning would
-- delete these markers.
SELECT count(*) FROM (SELECT FROM inbox WHERE handler = $1 AND processed_at < now() - $2::interval LIMIT $3) AS old;
