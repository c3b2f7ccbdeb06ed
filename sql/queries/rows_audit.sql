-- Adds a row to the audit trail for each row that was replaced, with the reason. If $4 is true, it
-- also adds a row for each deleted row.
INSERT INTO dlq_action (action, projection, account_id, version, actor, reason, result)
SELECT 'rebuild', $2, {audit_account}, {audit_version}, $1, concat_ws('; ', nullif($3::text, ''), $2 || ' ' || ROW ({key_d})::text || ': ' || d._kind),
       CASE WHEN d._kind = 'unknown' THEN 'removed' ELSE 'replaced' END
FROM projector_rebuild.{noted} AS d
WHERE d._kind <> 'unknown' OR $4
ORDER BY {key_order};
