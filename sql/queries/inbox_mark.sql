-- Marks messages, sorted by id so that concurrent writers cannot deadlock. It returns the messages
-- that were not marked before. If two transactions mark a message at once, the second waits for the
-- first, and the message is not in its result.
INSERT INTO inbox (message_id, handler)
SELECT m.id, $1 FROM unnest($2::text[]) AS m (id)
ON CONFLICT (message_id, handler) DO NOTHING
RETURNING message_id;
