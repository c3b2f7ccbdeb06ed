-- Returns the consumer groups that have positions of a projection.
SELECT DISTINCT consumer_group FROM projector_position WHERE projection = $1 ORDER BY consumer_group;
