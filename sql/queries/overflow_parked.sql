-- Stores what is still beyond the park limit after the first events of an account were parked, unless
-- somebody has changed the row since it was read.
UPDATE {overflow}
SET lowest_version = $6, events = $7, first_offset = $8, first_version = $9
WHERE {of}account_id = $1 AND first_offset = $2 AND first_version = $3 AND highest_version = $4 AND events = $5;
