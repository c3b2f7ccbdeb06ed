-- load_holds.sql for accounts of one shard of Citus: the lists of accounts tell which one.
SELECT coalesce(w.account_id, o.account_id),
       coalesce(w.events, 0), coalesce(w.bytes, 0)::bigint, coalesce(w.next_version, 0), coalesce(n.class, ''),
       o.account_id IS NOT NULL
FROM (
    SELECT p.account_id, count(*) AS events, min(p.version) AS next_version,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13) AS bytes
    FROM parked_event p
    LEFT JOIN account_balance b ON b.account_id = p.account_id
    WHERE p.account_id = ANY ($1::text[]) AND (b.version IS NULL OR p.version > b.version)
    GROUP BY p.account_id
) AS w
LEFT JOIN parked_event n ON n.account_id = w.account_id AND n.version = w.next_version
FULL JOIN (SELECT account_id FROM park_overflow WHERE account_id = ANY ($1::text[])) AS o
    ON o.account_id = w.account_id;
