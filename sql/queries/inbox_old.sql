-- How many markers of a handler are older than an interval, at most $3: what pruning would delete.
SELECT count(*) FROM (SELECT FROM inbox WHERE handler = $1 AND processed_at < now() - $2::interval LIMIT $3) AS old;
