-- Sets the consumer group for group_first.sql, whose statement cannot have parameters.
SELECT set_config('projector.group', $1, true);
