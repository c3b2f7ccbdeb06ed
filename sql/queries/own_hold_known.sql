-- hold_known.sql of a projection of one's own ($1).
SELECT count(*)
FROM (
    SELECT b.account_id
    FROM unnest($2::text[], $3::int8[]) AS r (account_id, version)
    JOIN projection_account b ON b.projection = $1 AND b.account_id = r.account_id AND b.version = r.version
    FOR NO KEY UPDATE OF b SKIP LOCKED
) AS held;
