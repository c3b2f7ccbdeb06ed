-- Returns, for each partition of a topic, the offset up to which the live rows contain the events.
-- This offset is the highest one that any consumer group has ever reached, even if the position of
-- the group was set back later.
SELECT partition, max(greatest(next_offset, judged_until)), min(topic_id), max(topic_id)
FROM projector_position
WHERE projection = $1 AND topic = $2
GROUP BY partition
ORDER BY partition;
