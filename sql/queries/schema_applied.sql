-- Returns the applied migrations and their times. The tool goose stores a time without a time zone,
-- which is in the time zone of the session.
SELECT version_id, max(tstamp)::timestamptz
FROM projector_schema_version
WHERE is_applied AND version_id > 0
GROUP BY version_id;
