-- Returns the size of all parked events. See load_holds.sql for the size of an event.
SELECT coalesce(sum(coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0) + pg_column_size(headers) - 13), 0)::bigint
FROM {parked}
WHERE {of}true;
