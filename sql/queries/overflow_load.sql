-- The ranges of events beyond the park limit of the given accounts.
SELECT account_id, lowest_version, highest_version, events
FROM {overflow}
WHERE {of}account_id = ANY ($1::text[])
ORDER BY account_id
FOR UPDATE;
