-- Returns the decisions of people about single events, in the order of the commits. It returns the
-- decisions after the row $1 of the audit trail, which was written at $4. If that row does not
-- exist, for example because the database was restored to an earlier time, it returns an empty row
-- 0 and all decisions. A version that is not known is -1. Older rows have no column with the
-- projection. If they are of a custom projection, their result ends with its name ($3).
WITH known AS (SELECT FROM projector_decision WHERE chain = $1 AND at = $4)
SELECT 0 AS chain, '' AS action, '' AS result, '' AS account_id, 0 AS version,
       '' AS topic, 0 AS partition, 0 AS "offset", 'epoch'::timestamptz AS at
WHERE NOT EXISTS (SELECT FROM known)
UNION ALL
SELECT chain, action, result, coalesce(account_id, ''), coalesce(version, -1),
       coalesce(topic, ''), coalesce(partition, 0), coalesce("offset", 0), at
FROM projector_decision
WHERE chain > CASE WHEN EXISTS (SELECT FROM known) THEN $1 ELSE 0 END
  AND (projection = $2 OR projection IS NULL AND action = 'skip' AND result = 'skipped' || $3)
ORDER BY chain;
