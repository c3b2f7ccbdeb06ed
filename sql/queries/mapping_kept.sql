-- Returns the mappings of the positions of a projection ($1) that differ from $2, and whether
-- records were processed with them.
SELECT mapping, bool_or(greatest(next_offset, judged_until) > 0)
FROM projector_position
WHERE projection = $1 AND mapping <> $2
GROUP BY mapping;
