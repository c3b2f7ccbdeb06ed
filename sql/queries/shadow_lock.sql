-- Tries to lock rebuilds, so that only one rebuild runs at a time. The session of the rebuild holds
-- this lock.
SELECT pg_try_advisory_lock(hashtextextended('projector rebuild ' || current_database(), 7215));
