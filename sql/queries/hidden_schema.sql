-- Returns a schema of the search path that contains the read model but that this session may not
-- use.
SELECT n.nspname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'projector_schema_version'
  AND NOT has_schema_privilege(n.oid, 'USAGE')
  AND n.nspname IN (SELECT replace(trim(BOTH ' "' FROM part), '$user', current_user)
                    FROM unnest(string_to_array(current_setting('search_path'), ',')) AS part)
LIMIT 1;
