-- Takes out parked events of these accounts that must not be there.
WITH kept AS (
    SELECT p.account_id, p.version, p.expected_version, p.class, p.topic, p.partition, p."offset",
           row_number() OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS n,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13)
               OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS bytes
    FROM projector_rebuild.difference d
    JOIN projector_rebuild.parked_event p ON p.account_id = d.account_id AND (d.rebuilt IS NULL OR p.version > d.rebuilt)
    JOIN unnest($3::int4[], $4::int8[]) AS l (partition, next_offset) ON l.partition = p.partition AND p."offset" < l.next_offset
    WHERE d.swap = $1
)
DELETE FROM parked_event e
USING projector_rebuild.difference d
WHERE d.swap = $1 AND e.account_id = d.account_id
  AND NOT EXISTS (
    SELECT FROM kept k
    WHERE k.n <= $2 AND ($5 = 0 OR k.bytes <= $5 OR k.version = k.expected_version)
      AND k.account_id = e.account_id AND k.version = e.version AND k.class = e.class
      AND k.topic = e.topic AND k.partition = e.partition AND k."offset" = e."offset");
