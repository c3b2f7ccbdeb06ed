-- Those of the given messages that are marked.
SELECT message_id FROM inbox WHERE handler = $1 AND message_id = ANY ($2::text[]);
