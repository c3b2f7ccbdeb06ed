-- load_versions.sql of a projection of one's own ($1).
SELECT account_id, version FROM projection_account WHERE projection = $1 AND account_id = ANY ($2::text[]);
