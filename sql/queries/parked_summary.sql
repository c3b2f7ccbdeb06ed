-- Returns the number of waiting accounts and events, by the class of the event that caused the gap.
SELECT class, count(*), coalesce(sum(waiting_events), 0)::bigint,
       coalesce(extract(epoch FROM now() - min(since)), 0)::float8
FROM {hold}
WHERE {of}true
GROUP BY class;
