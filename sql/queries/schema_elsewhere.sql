-- A schema that holds a read model and that search_path does not name.
SELECT n.nspname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'projector_schema_version' AND c.relkind = 'r'
  AND n.nspname <> ALL (current_schemas(false))
ORDER BY n.nspname
LIMIT 1;
