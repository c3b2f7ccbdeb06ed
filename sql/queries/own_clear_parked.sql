-- clear_parked.sql of a projection of one's own ($1).
DELETE FROM projection_parked_event p
USING unnest($2::text[], $3::int8[]) AS d (account_id, version)
WHERE p.projection = $1 AND p.account_id = d.account_id AND p.version <= d.version;
