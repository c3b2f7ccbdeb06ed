-- What people have decided about single events since a row of the trail ($1), in the order of the
-- commits; all of it where the database was restored to before that row. Rows from before there
-- was the column name a custom projection in their result ($3).
SELECT chain, action, result, coalesce(account_id, ''), coalesce(version, 0),
       coalesce(topic, ''), coalesce(partition, 0), coalesce("offset", 0)
FROM projector_decision
WHERE chain > CASE WHEN EXISTS (SELECT FROM projector_decision WHERE chain = $1) THEN $1 ELSE 0 END
  AND (projection = $2 OR projection IS NULL AND action = 'skip' AND result = 'skipped' || $3)
ORDER BY chain;
