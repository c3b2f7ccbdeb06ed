-- The positions of the projection's consumers. A partition that waits for a person does not move.
SELECT consumer_group, topic, partition, fence, next_offset
FROM projector_position
WHERE projection = {projection} AND stopped_reason IS NULL;
