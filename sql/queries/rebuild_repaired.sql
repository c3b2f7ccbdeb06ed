-- The accounts that people or the outbox have changed in a projection ($1) since a snapshot ($2).
-- '' stands for actions without an account. The rebuilt tables do not contain these changes.
-- The bounds of the age are those of rows_written.
SELECT DISTINCT coalesce(a.account_id, '')
FROM dlq_action AS a
WHERE a.action IN ('replay', 'discard', 'skip', 'unskip', 'fetch', 'open') AND coalesce(a.projection, $1) = $1
  AND age(a.xmin) BETWEEN (SELECT age(pg_snapshot_xmax(pg_current_snapshot())::xid)) AND (SELECT age(pg_snapshot_xmin($2::pg_snapshot)::xid))
  AND NOT pg_visible_in_snapshot(((pg_current_xact_id()::text)::numeric - age(a.xmin))::text::xid8, $2::pg_snapshot);
