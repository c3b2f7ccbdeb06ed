-- The events beyond the park limit of these accounts are read again from the position ($4), and
-- counted again if they still have to wait. Those before $5, where the log starts, are no longer there.
UPDATE {overflow} AS o
SET first_offset = NULL, first_version = NULL,
    lowest_version = CASE WHEN o.first_offset >= $4 THEN o.highest_version ELSE o.lowest_version END,
    events = CASE WHEN o.first_offset >= $4 THEN 0 ELSE o.events END
WHERE {of_o}o.topic = $1 AND o.partition = $2 AND o.account_id = ANY ($3::text[])
  AND (o.first_offset >= $4 OR o.first_offset < $5);
