-- Remembers what waits beyond the park limit. See swap_parked_insert.
INSERT INTO park_overflow (account_id, lowest_version, highest_version, events, expected_version, since)
SELECT k.account_id, min(k.version), max(k.version), count(*), min(k.expected_version),
       min(CASE WHEN k.record_timestamp BETWEEN 1 AND extract(epoch FROM now()) * 1000
                THEN to_timestamp(k.record_timestamp / 1000.0) ELSE now() END)
FROM (
    SELECT p.account_id, p.version, p.expected_version, p.record_timestamp,
           row_number() OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS n,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13)
               OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS bytes
    FROM projector_rebuild.difference d
    JOIN projector_rebuild.parked_event p ON p.account_id = d.account_id AND (d.rebuilt IS NULL OR p.version > d.rebuilt)
    JOIN unnest($3::int4[], $4::int8[]) AS l (partition, next_offset) ON l.partition = p.partition AND p."offset" < l.next_offset
    WHERE d.swap = $1
) AS k
WHERE NOT (k.n <= $2 AND ($5 = 0 OR k.bytes <= $5 OR k.version = k.expected_version))
GROUP BY k.account_id
ORDER BY k.account_id;
