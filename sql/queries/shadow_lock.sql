-- Only one rebuild runs at a time. Its session holds this lock.
SELECT pg_try_advisory_lock(hashtextextended('projector rebuild ' || current_database(), 7215));
