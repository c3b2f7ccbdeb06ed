-- Stores what is still beyond the park limit after the first events of an account were parked.
UPDATE {overflow} SET lowest_version = $2, events = $3, first_offset = $4, first_version = $5 WHERE {of}account_id = $1;
