-- Returns the columns of a table ($1) with a default, or with numbers of PostgreSQL, that its copy does not
-- have (see projector_rebuild_copy).
SELECT quote_ident(l.attname)
FROM pg_attribute AS l
JOIN pg_attribute AS s ON s.attname = l.attname AND s.attrelid = to_regclass('projector_rebuild.' || quote_ident($1))
WHERE l.attrelid = to_regclass(quote_ident($1)) AND l.attgenerated = ''
  AND (l.atthasdef OR l.attidentity <> '') AND NOT (s.atthasdef OR s.attidentity <> '')
ORDER BY l.attnum;
