-- Returns the decisions of people about single events after a row of the audit trail ($1), in the
-- order of the commits. It returns all decisions if that row does not exist, because the database
-- was restored to an earlier time. Rows from before there was a column for the projection have the
-- name of a custom projection in their result ($3).
SELECT chain, action, result, coalesce(account_id, ''), coalesce(version, 0),
       coalesce(topic, ''), coalesce(partition, 0), coalesce("offset", 0)
FROM projector_decision
WHERE chain > CASE WHEN EXISTS (SELECT FROM projector_decision WHERE chain = $1) THEN $1 ELSE 0 END
  AND (projection = $2 OR projection IS NULL AND action = 'skip' AND result = 'skipped' || $3)
ORDER BY chain;
