-- clear_overflow.sql of a projection of one's own ($1).
DELETE FROM projection_park_overflow o
USING unnest($2::text[], $3::int8[]) AS d (account_id, version)
WHERE o.projection = $1 AND o.account_id = d.account_id AND o.highest_version <= d.version;
