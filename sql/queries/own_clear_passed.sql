-- clear_passed.sql of a projection of one's own ($1).
DELETE FROM projection_parked_event p
USING projection_account b
WHERE p.projection = $1 AND p.topic = $2 AND p.partition = $3
  AND b.projection = $1 AND b.account_id = p.account_id AND p.version <= b.version;
