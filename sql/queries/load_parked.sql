-- Returns the parked events of an account above a version, in order, up to a total size in bytes.
-- Each row also has the number of events that the query would return without the size limit.
SELECT version, class, expected_version, topic, partition, "offset", record_timestamp, replays, key, value, headers, events
FROM (
    SELECT p.*,
           count(*) OVER () AS events,
           sum(coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + octet_length(array_send(p.headers)))
               OVER (ORDER BY p.version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT * FROM {parked} WHERE {of}account_id = $1 AND version > $2 ORDER BY version LIMIT $3) AS p
) AS measured
WHERE coalesce(before, 0) < $4
ORDER BY version;
