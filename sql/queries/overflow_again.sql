-- The events beyond the park limit of these accounts are read again from the position ($4), or are
-- no longer in the log, which starts at $5.
UPDATE {overflow} AS o
SET first_offset = NULL, first_version = NULL
WHERE {of_o}o.topic = $1 AND o.partition = $2 AND o.account_id = ANY ($3::text[])
  AND (o.first_offset >= $4 OR o.first_offset < $5);
