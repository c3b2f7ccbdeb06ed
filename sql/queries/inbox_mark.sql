-- Marks messages, sorted by id so that concurrent writers cannot deadlock, and
-- answers those that were not marked before. Of two who mark the same one at once,
-- the second waits for the first and gets no answer for it.
INSERT INTO inbox (message_id, handler)
SELECT m.id, $1 FROM unnest($2::text[]) AS m (id)
ON CONFLICT (message_id, handler) DO NOTHING
RETURNING message_id;
