-- Stores a request for a change. A trigger sets the user and the time.
INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''))
RETURNING id;
