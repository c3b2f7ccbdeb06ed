-- The version that an account waits for. No row if it does not wait.
SELECT expected_version, received_version, class, waiting_events, overflowed_events, since
FROM {hold}
WHERE {of}account_id = $1;
