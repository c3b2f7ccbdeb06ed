-- Which migrations are applied, and when: goose keeps the time without its zone, which is
-- that of the session.
SELECT version_id, max(tstamp)::timestamptz
FROM projector_schema_version
WHERE is_applied AND version_id > 0
GROUP BY version_id;
