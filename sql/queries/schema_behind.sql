-- Returns the schema that has the projector's tables, and the schema in which new tables would be
-- created, if they are not the same. Both are in search_path.
SELECT n.nspname::text, current_schema()::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('projector_schema_version') AND n.nspname <> current_schema();
