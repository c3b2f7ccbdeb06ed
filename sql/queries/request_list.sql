-- Returns the requests of a state, or all requests, in the order of creation. An operator can insert a
-- null in an array by hand, and the program does not read nulls.
SELECT id, at, action, requested_by, actor, coalesce(reason, ''), records, state, coalesce(decided_by, ''), array_replace(arguments, NULL, '')
FROM repair_request
WHERE ($1::text = '' OR state = $1) AND ($2::bigint IS NULL OR id = $2)
ORDER BY id;
