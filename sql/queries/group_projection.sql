-- Returns the projection of a consumer group.
SELECT projection FROM projector_position WHERE consumer_group = $1 LIMIT 1;
