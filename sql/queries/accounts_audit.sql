-- Adds a row to the audit trail for each account that a rebuild has changed, with the reason.
INSERT INTO dlq_action (action, projection, account_id, version, actor, reason, result)
SELECT 'rebuild', $2, u.account_id, u.version, $1, concat_ws('; ', nullif($3::text, ''), u.reason), u.result
FROM unnest($4::text[], $5::int8[], $6::text[], $7::text[]) AS u (account_id, version, reason, result)
ORDER BY u.account_id COLLATE "C";
