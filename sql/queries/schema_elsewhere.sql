-- Returns a schema that contains a read model but is not in the search path.
SELECT n.nspname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'projector_schema_version' AND c.relkind = 'r'
  AND n.nspname <> ALL (current_schemas(false))
ORDER BY n.nspname
LIMIT 1;
