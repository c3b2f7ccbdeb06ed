-- Returns the size of all parked events.
SELECT coalesce(sum({parked_size}), 0)::bigint
FROM {parked} p
WHERE {of_p}true;
