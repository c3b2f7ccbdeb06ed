-- Returns the positions of all consumer groups of the projection. A stopped partition is left out,
-- because its position does not move until a person sets it.
SELECT consumer_group, topic, partition, fence, next_offset
FROM projector_position
WHERE projection = {projection} AND stopped_reason IS NULL;
