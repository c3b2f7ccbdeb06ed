-- Deletes a limited number of a handler's markers that are older than a time, the oldest first.
DELETE FROM inbox
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inbox WHERE handler = $1 AND processed_at < $2 ORDER BY handler, processed_at LIMIT $3));
