-- Returns, for the given accounts, a summary of the parked events above their versions. Accounts
-- without such events are not returned. Usually no event is parked at all, and then no account is
-- read. Without that read, the query takes 0.10 ms instead of 0.32 ms for 512 accounts. The check
-- is inside the array, because Citus cannot plan it next to an outer join.
SELECT coalesce(w.account_id, o.account_id),
       coalesce(w.events, 0), coalesce(w.bytes, 0)::bigint, coalesce(w.next_version, 0), coalesce(n.class, ''),
       o.account_id IS NOT NULL
FROM (
    SELECT p.account_id, count(*) AS events, min(p.version) AS next_version,
           sum({parked_size}) AS bytes
    FROM {parked} p
    LEFT JOIN {account} b ON {of_b}b.account_id = p.account_id
    WHERE
      {one_server} p.account_id = ANY (CASE WHEN EXISTS (SELECT 1 FROM {parked} WHERE {of}true) THEN $1::text[] ELSE '{}' END) AND
      {shard} p.account_id = ANY ($1::text[]) AND
      {of_p}(b.version IS NULL OR p.version > b.version)
    GROUP BY p.account_id
) AS w
LEFT JOIN {parked} n ON {of_n}n.account_id = w.account_id AND n.version = w.next_version
FULL JOIN (SELECT account_id FROM {overflow}
           WHERE {of}account_id = ANY (
               {one_server} CASE WHEN EXISTS (SELECT 1 FROM {overflow} WHERE {of}true) THEN $1::text[] ELSE '{}' END
               {shard} $1::text[]
           )) AS o
    ON o.account_id = w.account_id;
