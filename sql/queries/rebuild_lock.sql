-- The lock for rebuilds, so that only one rebuild runs at a time in a database. The query shadow_lock
-- tries to get the lock, and the session of the rebuild holds it until shadow_unlock or its end.
SELECT {lock}(hashtextextended('projector rebuild ' || current_database(), 7215));
