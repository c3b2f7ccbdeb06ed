-- parked_bytes.sql of a projection of one's own ($1).
SELECT coalesce(sum(coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0) + pg_column_size(headers) - 13), 0)::bigint
FROM projection_parked_event
WHERE projection = $1;
