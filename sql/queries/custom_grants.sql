-- Returns, as GRANT statements, which of the privileges $2 on the tables $1 a role lacks. The role
-- is $3, or the current role if $3 is empty. Names that are not tables are ignored. The grant on a
-- schema comes before the grants on its tables. The tables are read from the catalog, because
-- to_regclass fails for a schema that this session may not use.
WITH needed AS (
    SELECT u.name, u.privilege, u.at, u.parts[1] AS schema, coalesce(nullif($3, ''), current_user) AS role,
           CASE WHEN cardinality(u.parts) = 1 THEN to_regclass(u.name)
                ELSE (SELECT c.oid FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = u.parts[2]) END AS oid,
           cardinality(u.parts) > 1 AND NOT has_schema_privilege(coalesce(nullif($3, ''), current_user), n.oid, 'USAGE') AS hidden
    FROM (SELECT name, privilege, at, parse_ident(name) AS parts
          FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (name, privilege, at)) AS u
    LEFT JOIN pg_namespace n ON cardinality(u.parts) > 1 AND n.nspname = u.parts[1]
)
SELECT text FROM (
    SELECT DISTINCT format('GRANT USAGE ON SCHEMA %I TO %I;', schema, role) AS text, 0::bigint AS at
    FROM needed WHERE hidden
    UNION ALL
    SELECT format('GRANT %s ON %s TO %I;', string_agg(privilege, ', ' ORDER BY at), name, role), min(at)
    FROM needed WHERE oid IS NOT NULL AND NOT has_table_privilege(role, oid, privilege) GROUP BY name, role
) AS lines
ORDER BY at, text;
