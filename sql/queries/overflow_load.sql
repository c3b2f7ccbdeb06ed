-- Returns the ranges of events beyond the park limit of the given accounts. It locks these rows
-- until the end of the transaction. An offset of -1 means that the events cannot be read again from
-- the topic.
SELECT account_id, coalesce(partition, -1), lowest_version, highest_version, events,
       CASE WHEN partition IS NULL OR last_offset IS NULL THEN -1 ELSE coalesce(first_offset, -1) END,
       coalesce(last_offset, -1), coalesce(first_version, -1)
FROM {overflow}
WHERE {of}account_id = ANY ($1::text[])
ORDER BY account_id
FOR UPDATE;
