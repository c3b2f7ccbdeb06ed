-- load_parked.sql of a projection of one's own ($1).
SELECT version, class, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers, events
FROM (
    SELECT p.*,
           count(*) OVER () AS events,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + octet_length(array_send(p.headers)))
               OVER (ORDER BY p.version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT * FROM projection_parked_event
          WHERE projection = $1 AND account_id = $2 AND version > $3 ORDER BY version LIMIT $4) AS p
) AS measured
WHERE coalesce(before, 0) < $5
ORDER BY version;
