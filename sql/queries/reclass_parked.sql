-- Changes the class of a parked event that could not be applied. The account now waits for a
-- correction of this event.
UPDATE {parked} SET class = $3 WHERE {of}account_id = $1 AND version = $2;
