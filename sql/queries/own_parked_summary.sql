-- parked_summary.sql of a projection of one's own ($1).
SELECT class, count(*), coalesce(sum(waiting_events), 0)::bigint,
       coalesce(extract(epoch FROM now() - min(since)), 0)::float8
FROM projection_hold
WHERE projection = $1
GROUP BY class;
