-- What the mappings say that the rows of a projection ($1) were made with, but for one that says
-- the same as $2; none while nothing was processed.
SELECT DISTINCT mapping
FROM projector_position
WHERE projection = $1 AND mapping <> $2 AND greatest(next_offset, judged_until) > 0;
