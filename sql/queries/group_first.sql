-- Waits for other transactions that insert the first position of the consumer group, if the group
-- has no position yet. Without this lock, two projections could start in the same group at the same
-- time, and neither would see the positions of the other.
SELECT pg_advisory_xact_lock(hashtextextended('projector group ' || $1, 0))
WHERE NOT EXISTS (SELECT FROM projector_position WHERE consumer_group = $1);
