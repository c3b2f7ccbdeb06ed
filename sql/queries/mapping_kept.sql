-- Returns the mappings of the positions of a projection ($1) that differ from $2, and whether
-- records were processed with them. If the topic was recreated, records of the earlier topic of this
-- name were processed.
SELECT p.mapping, bool_or(greatest(p.next_offset, p.judged_until) > 0 OR s.topic IS NOT NULL)
FROM projector_position AS p
LEFT JOIN projector_source AS s ON s.projection = p.projection AND s.topic = p.topic AND s.topic_id <> p.topic_id
WHERE p.projection = $1 AND p.mapping <> $2
GROUP BY p.mapping;
