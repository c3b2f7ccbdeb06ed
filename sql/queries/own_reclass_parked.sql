-- reclass_parked.sql of a projection of one's own ($1).
UPDATE projection_parked_event SET class = $4 WHERE projection = $1 AND account_id = $2 AND version = $3;
