-- load_holds.sql of a projection of one's own ($1).
SELECT coalesce(w.account_id, o.account_id),
       coalesce(w.events, 0), coalesce(w.bytes, 0)::bigint, coalesce(w.next_version, 0), coalesce(n.class, ''),
       o.account_id IS NOT NULL
FROM (
    SELECT p.account_id, count(*) AS events, min(p.version) AS next_version,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13) AS bytes
    FROM projection_parked_event p
    LEFT JOIN projection_account b ON b.projection = $1 AND b.account_id = p.account_id
    WHERE EXISTS (SELECT FROM projection_parked_event WHERE projection = $1)
      AND p.projection = $1 AND p.account_id = ANY ($2::text[]) AND (b.version IS NULL OR p.version > b.version)
    GROUP BY p.account_id
) AS w
LEFT JOIN projection_parked_event n ON n.projection = $1 AND n.account_id = w.account_id AND n.version = w.next_version
FULL JOIN (SELECT account_id FROM projection_park_overflow
           WHERE EXISTS (SELECT FROM projection_park_overflow WHERE projection = $1)
             AND projection = $1 AND account_id = ANY ($2::text[])) AS o
    ON o.account_id = w.account_id;
