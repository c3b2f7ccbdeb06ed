-- Returns the events with the given keys. A key without an event has no row in the result.
SELECT s.account_id, s.version, s.event_id
FROM unnest($1::text[], $2::int8[]) AS k (account_id, version)
JOIN account_statement s ON s.account_id = k.account_id AND s.version = k.version;
