-- Returns the rows that have the keys of the given events, in the order of the events, and whether
-- this transaction has inserted them.
SELECT k.n - 1, s.event_id, s.xmin = pg_current_xact_id()::xid
FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS k (account_id, version, n)
JOIN account_statement s ON s.account_id = k.account_id AND s.version = k.version
ORDER BY k.n;
