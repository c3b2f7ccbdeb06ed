-- Returns the gaps, with the oldest first.
SELECT account_id, expected_version, received_version, class, waiting_events, since,
       greatest(extract(epoch FROM now() - since), 0)::float8
FROM {hold}
WHERE {of}true
ORDER BY since, account_id;
