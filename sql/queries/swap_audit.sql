-- Records each account that was replaced or removed, and why: what it was compared to be.
-- One that is not at its version all the same is not recorded: then the transaction must
-- not be committed.
INSERT INTO dlq_action (action, projection, account_id, version, actor, reason, result)
SELECT 'rebuild', 'account_balance', d.account_id, d.rebuilt, $2, concat_ws('; ', nullif($3::text, ''), d.kind), CASE WHEN d.kind = 'unknown' THEN 'removed' ELSE 'replaced' END
FROM projector_rebuild.difference d
LEFT JOIN account_balance b ON b.account_id = d.account_id
WHERE d.swap = $1 AND b.version IS NOT DISTINCT FROM d.rebuilt
ORDER BY d.account_id;
