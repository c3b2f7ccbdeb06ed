-- parked_any.sql of a projection of one's own ($1).
SELECT EXISTS (SELECT FROM projection_parked_event WHERE projection = $1)
    OR EXISTS (SELECT FROM projection_park_overflow WHERE projection = $1);
