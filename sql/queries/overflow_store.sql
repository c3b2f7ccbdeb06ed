-- What is beyond the park limit of an account now. Without $5 and $6 it cannot be read again.
UPDATE {overflow}
SET lowest_version = $2, highest_version = $3, events = $4, first_offset = $5, first_version = $6
WHERE {of}account_id = $1;
