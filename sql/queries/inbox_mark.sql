-- Inserts the markers of messages, sorted by id so that concurrent writers cannot deadlock. It
-- returns the messages that had no marker before. If two transactions mark a message at the same
-- time, the second transaction waits for the first, and its result does not contain the message.
INSERT INTO inbox (message_id, handler)
SELECT m.id, $1 FROM unnest($2::text[]) AS m (id)
ON CONFLICT (message_id, handler) DO NOTHING
RETURNING message_id;
