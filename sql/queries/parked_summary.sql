-- What waits for a gap, by the class of what made the gap.
SELECT class, count(*), coalesce(sum(waiting_events), 0)::bigint,
       coalesce(extract(epoch FROM now() - min(since)), 0)::float8
FROM {hold}
WHERE {of}true
GROUP BY class;
