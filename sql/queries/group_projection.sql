-- The projection that a consumer group has run.
SELECT projection FROM projector_position WHERE consumer_group = $1 LIMIT 1;
