-- The applied migrations and their times. goose stores a time without a time zone; it is in the zone
-- of the session.
SELECT version_id, max(tstamp)::timestamptz
FROM projector_schema_version
WHERE is_applied AND version_id > 0
GROUP BY version_id;
