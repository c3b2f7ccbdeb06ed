-- What people have done, oldest first, as it was chosen; an empty text chooses all.
SELECT id, at, action, account_id, version, class, actor, db_user, reason, result, altered, value_sha256, original_sha256,
       approved_by, hash
FROM dlq_action
WHERE ($1::text = '' OR account_id = $1) AND ($2::text = '' OR action = $2) AND ($3::text = '' OR actor = $3)
  AND ($4::timestamptz IS NULL OR at >= $4) AND ($5::timestamptz IS NULL OR at < $5)
ORDER BY id;
