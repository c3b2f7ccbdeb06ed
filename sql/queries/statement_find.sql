-- Returns the rows that have the given keys, in the order of the keys. For each row, it returns the
-- index of its key and whether this transaction has inserted the row.
SELECT k.n - 1, s.event_id, coalesce(s.xmin = pg_current_xact_id_if_assigned()::xid, false)
FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS k (account_id, version, n)
JOIN account_statement s ON s.account_id = k.account_id AND s.version = k.version
ORDER BY k.n;
