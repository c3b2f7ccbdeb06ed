-- Returns another projection than $2 that has positions of the consumer group.
SELECT projection FROM projector_position WHERE consumer_group = $1 AND projection <> $2 LIMIT 1;
