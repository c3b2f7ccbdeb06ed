-- Stores, for each account ($1), the range of the waiting events that are beyond the park limit.
INSERT INTO {overflow}
    ({projection_column}account_id, lowest_version, highest_version, events, expected_version, since, topic, partition, first_offset, last_offset, first_version)
SELECT {projection_value}k.account_id, min(k.version), max(k.version), count(*), min(k.expected_version),
       min(CASE WHEN k.record_timestamp BETWEEN 1 AND extract(epoch FROM now()) * 1000
                THEN to_timestamp(k.record_timestamp / 1000.0) ELSE now() END),
       min(k.topic), CASE WHEN min(k.topic) = max(k.topic) AND min(k.partition) = max(k.partition) THEN nullif(min(k.partition), -1) END,
       min(k."offset"), max(k."offset"), min(k.version)
FROM {kept} AS k
WHERE NOT k.fits AND k.account_id = ANY ($1::text[])
GROUP BY k.account_id
ORDER BY k.account_id COLLATE "C";
