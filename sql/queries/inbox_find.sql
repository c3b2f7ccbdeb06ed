-- Returns the given messages that have a marker, which means that they were processed.
SELECT message_id FROM inbox WHERE handler = $1 AND message_id = ANY ($2::text[]);
