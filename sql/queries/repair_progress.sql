-- Where the consumers of the projection are. A partition that a person has to attend to does
-- not move.
SELECT consumer_group, topic, partition, fence, next_offset
FROM projector_position
WHERE projection = {projection} AND stopped_reason IS NULL;
