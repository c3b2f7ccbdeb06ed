-- Returns the version that an account waits for. There is no row if the account does not wait.
SELECT expected_version, received_version, class, waiting_events, overflowed_events, since
FROM {hold}
WHERE {of}account_id = $1;
