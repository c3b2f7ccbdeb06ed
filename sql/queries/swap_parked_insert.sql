-- Parks what waits behind the holes of these accounts, as much as the limits allow, in
-- the order in which it came, as far as consumers have been: what lies beyond, they
-- dead-letter and park when they come to it. It waits since then, or since now where that
-- is not known or cannot be: to_timestamp fails (22008) beyond the year 294276.
--
-- Where the rebuilt tables are ahead of the consumers, the turn of an early event may have
-- come there and not yet here: it is parked as early, so that the consumers find out that
-- it cannot be applied, and dead-letter it as that.
INSERT INTO parked_event
    (account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays,
     key, value, headers, parked_at)
SELECT k.account_id, k.version,
       CASE WHEN $5 AND k.version > k.expected_version
                 AND k.class IN ('currency_mismatch', 'balance_overflow', 'rejected_by_database')
            THEN 'version_gap' ELSE k.class END,
       k.event_id, k.expected_version, k.topic, k.partition, k."offset",
       k.record_timestamp, k.replays, k.key, k.value, k.headers,
       CASE WHEN k.record_timestamp BETWEEN 1 AND extract(epoch FROM now()) * 1000
            THEN to_timestamp(k.record_timestamp / 1000.0) ELSE now() END
FROM (
    SELECT p.*,
           row_number() OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS n,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13)
               OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS bytes
    FROM projector_rebuild.difference d
    JOIN projector_rebuild.parked_event p ON p.account_id = d.account_id AND (d.rebuilt IS NULL OR p.version > d.rebuilt)
    JOIN unnest($3::int4[], $4::int8[]) AS l (partition, next_offset) ON l.partition = p.partition AND p."offset" < l.next_offset
    WHERE d.swap = $1
) AS k
WHERE k.n <= $2 AND ($6 = 0 OR k.bytes <= $6 OR k.version = k.expected_version)
ORDER BY k.account_id, k.version
ON CONFLICT (account_id, version) DO NOTHING;
