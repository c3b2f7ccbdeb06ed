-- What waits behind holes, by the class of what made the hole.
SELECT class, count(*), coalesce(sum(waiting_events), 0)::bigint,
       coalesce(extract(epoch FROM now() - min(since)), 0)::float8
FROM account_hold
GROUP BY class;
