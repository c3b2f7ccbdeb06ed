-- Returns the positions of the consumers of the projection. A stopped partition is left out,
-- because it does not move until a person sets its position.
SELECT consumer_group, topic, partition, fence, next_offset
FROM projector_position
WHERE projection = {projection} AND stopped_reason IS NULL;
