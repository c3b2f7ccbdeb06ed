-- A parked event that could not be applied when its turn came is the hole now.
UPDATE parked_event SET class = $3 WHERE account_id = $1 AND version = $2;
