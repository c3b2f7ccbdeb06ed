-- All events of an account that were beyond the park limit are parked, unless somebody has changed the
-- row since it was read.
DELETE FROM {overflow}
WHERE {of}account_id = $1 AND first_offset = $2 AND first_version = $3 AND highest_version = $4 AND events = $5;
