SELECT pg_advisory_unlock(hashtextextended('projector rebuild ' || current_database(), 7215));
