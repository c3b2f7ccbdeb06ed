-- Returns the selected rows of the audit trail, with the oldest first. An empty filter selects all
-- rows. Older versions of the program wrote the name of a custom projection at the end of the
-- result, as " in NAME".
SELECT id, at, action, consumer_group, coalesce(projection, substring(result FROM '^[a-z]+ in ([a-z][a-z0-9_]*)$')), topic, partition, "offset",
       dlq_partition, dlq_offset, account_id, version, class, request_id, requested_by, actor, db_user, reason,
       regexp_replace(result, '^([a-z]+) in [a-z][a-z0-9_]*$', '\1'), altered, value_sha256, original_sha256, approved_by, hash
FROM dlq_action
WHERE ($1::text = '' OR account_id = $1) AND ($2::text = '' OR action = $2) AND ($3::text = '' OR actor = $3)
  AND ($4::timestamptz IS NULL OR at >= $4) AND ($5::timestamptz IS NULL OR at < $5)
ORDER BY id;
