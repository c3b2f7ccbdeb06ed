-- Stores the new range of events beyond the park limit of an account. If $5 and $6 are null, the
-- events cannot be read again from the topic.
UPDATE {overflow}
SET lowest_version = $2, highest_version = $3, events = $4, first_offset = $5, first_version = $6
WHERE {of}account_id = $1;
