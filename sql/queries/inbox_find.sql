-- Returns those of the given messages that have a marker.
SELECT message_id FROM inbox WHERE handler = $1 AND message_id = ANY ($2::text[]);
