-- Records each account that was replaced, and why: what it was compared to be.
INSERT INTO dlq_action (action, account_id, version, actor, reason, result)
SELECT 'rebuild', account_id, version, $1, kind, CASE WHEN kind = 'unknown' THEN 'removed' ELSE 'replaced' END
FROM projector_rebuild.settled
ORDER BY account_id;
