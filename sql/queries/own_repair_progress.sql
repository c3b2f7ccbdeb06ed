-- repair_progress.sql of a projection of one's own ($1).
SELECT consumer_group, topic, partition, fence, next_offset
FROM projector_position
WHERE projection = $1 AND stopped_reason IS NULL;
