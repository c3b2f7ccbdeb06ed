-- Only one rebuild at a time: held by its session.
SELECT pg_try_advisory_lock(hashtextextended('projector rebuild ' || current_database(), 7215));
