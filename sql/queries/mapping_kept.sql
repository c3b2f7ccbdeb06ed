-- Returns the mappings of the positions of a projection ($1) that differ from $2, and whether
-- records were processed with them.
SELECT p.mapping, bool_or({processed})
FROM projector_position AS p
WHERE p.projection = $1 AND p.mapping <> $2
GROUP BY p.mapping;
