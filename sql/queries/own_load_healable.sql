-- load_healable.sql of a projection of one's own ($1).
SELECT DISTINCT p.account_id
FROM projection_parked_event p
JOIN projection_account b ON b.projection = $1 AND b.account_id = p.account_id
WHERE p.projection = $1 AND p.topic = $2 AND p.partition = $3 AND p.class = 'version_gap' AND p.version = b.version + 1;
