-- What an account waits for, if it does.
SELECT expected_version, received_version, class, waiting_events, overflowed_events, since
FROM account_hold
WHERE account_id = $1;
