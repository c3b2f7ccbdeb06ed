-- What an account waits for, if it does.
SELECT expected_version, received_version, class, waiting_events, overflowed_events, since
FROM {hold}
WHERE {of}account_id = $1;
