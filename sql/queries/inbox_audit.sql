-- Records that markers were put into the inbox.
INSERT INTO dlq_action (action, projection, actor, reason, result)
VALUES ('rebuild', $2, $1, $2 || ': ' || $3::bigint || ' markers were missing in the inbox', 'replaced');
