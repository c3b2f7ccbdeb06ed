-- Adds a row to the audit trail that says how many missing markers were inserted into the inbox.
INSERT INTO dlq_action (action, projection, actor, reason, result)
VALUES ('rebuild', $2, $1, concat_ws('; ', nullif($4::text, ''), $2::text || ': ' || $3::bigint || ' markers were missing in the inbox'), 'replaced');
