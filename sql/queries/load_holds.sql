-- The parked events of the given accounts above their versions. Accounts without parked events do
-- not appear. While no event at all is parked, which is the usual case, no account is looked up:
-- 0.10 instead of 0.32 ms for 512 accounts. This condition is in the array because Citus cannot plan
-- it next to an outer join. The size of an event is the size of its key, value and stored headers;
-- an empty array of headers has 13 bytes. Neither size function reads data stored out of line.
SELECT coalesce(w.account_id, o.account_id),
       coalesce(w.events, 0), coalesce(w.bytes, 0)::bigint, coalesce(w.next_version, 0), coalesce(n.class, ''),
       o.account_id IS NOT NULL
FROM (
    SELECT p.account_id, count(*) AS events, min(p.version) AS next_version,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13) AS bytes
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
