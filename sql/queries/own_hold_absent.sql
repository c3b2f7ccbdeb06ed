-- hold_absent.sql of a projection of one's own ($1).
SELECT count(*)
FROM unnest($2::text[]) AS r (account_id)
WHERE NOT EXISTS (SELECT FROM projection_account b WHERE b.projection = $1 AND b.account_id = r.account_id);
