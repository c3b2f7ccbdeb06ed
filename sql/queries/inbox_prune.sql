-- Deletes markers of a handler that are older than a time. It deletes a limited number of them,
-- beginning with the oldest.
DELETE FROM inbox
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inbox WHERE handler = $1 AND processed_at < $2 ORDER BY handler, processed_at LIMIT $3));
