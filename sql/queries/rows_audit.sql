-- Records each row that was replaced or removed, and why.
INSERT INTO dlq_action (action, projection, account_id, version, actor, reason, result)
SELECT 'rebuild', $2, {account}, {version}, $1, concat_ws('; ', nullif($3::text, ''), $2 || ' ' || ROW ({key_d})::text || ': ' || d._kind),
       CASE WHEN d._kind = 'unknown' THEN 'removed' ELSE 'replaced' END
FROM projector_rebuild.{difference} d
WHERE d._chosen
ORDER BY {key_order};
