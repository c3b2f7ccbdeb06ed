-- Inserts into the live inbox the markers that the rebuild has written after the snapshot of the
-- comparison ($2). The age of a row is limited as in rows_written.sql.
INSERT INTO inbox (message_id, handler)
SELECT s.message_id, s.handler
FROM projector_rebuild.inbox AS s
WHERE s.handler = $1 AND age(s.xmin)
      BETWEEN (SELECT age(pg_snapshot_xmax(pg_current_snapshot())::xid)) AND (SELECT age(pg_snapshot_xmin($2::pg_snapshot)::xid))
ORDER BY s.message_id COLLATE "C"
ON CONFLICT (message_id, handler) DO NOTHING;
