-- What is beyond the park limit of an account now. Nobody changes it until the end of the transaction.
SELECT partition, lowest_version, highest_version, events, first_offset, last_offset, first_version
FROM {overflow}
WHERE {of}account_id = $1 AND partition IS NOT NULL AND first_offset IS NOT NULL AND last_offset IS NOT NULL
FOR UPDATE;
