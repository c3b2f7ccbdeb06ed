-- A parked event that could not be applied when its turn came is the gap now.
UPDATE {parked} SET class = $3 WHERE {of}account_id = $1 AND version = $2;
