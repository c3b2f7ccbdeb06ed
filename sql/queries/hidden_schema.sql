-- A schema of the search path that holds the read model and may not be used.
SELECT n.nspname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'projector_schema_version'
  AND NOT has_schema_privilege(n.oid, 'USAGE')
  AND n.nspname IN (SELECT replace(trim(BOTH ' "' FROM part), '$user', current_user)
                    FROM unnest(string_to_array(current_setting('search_path'), ',')) AS part)
LIMIT 1;
