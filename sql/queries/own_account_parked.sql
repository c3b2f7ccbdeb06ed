-- account_parked.sql of a projection of one's own ($1).
SELECT p.version, p.class, p.event_id, p.topic, p.partition, p."offset"
FROM projection_parked_event p
LEFT JOIN projection_account b ON b.projection = $1 AND b.account_id = p.account_id
WHERE p.projection = $1 AND p.account_id = $2 AND (b.version IS NULL OR p.version > b.version)
ORDER BY p.version;
