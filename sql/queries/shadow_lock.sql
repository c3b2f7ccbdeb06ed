-- Tries to get the lock for rebuilds, so that only one rebuild runs at a time in a database. The
-- session of the rebuild holds this lock until it ends.
SELECT pg_try_advisory_lock(hashtextextended('projector rebuild ' || current_database(), 7215));
