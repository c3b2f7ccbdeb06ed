-- The grants that the present role lacks of the tables ($1) that it needs for something ($2),
-- as statements; names that are no tables are left out. A schema comes first: what is in one
-- that may not be used cannot be looked up.
WITH needed AS (
    SELECT u.name, u.privilege, u.at, u.parts[1] AS schema,
           cardinality(u.parts) > 1 AND NOT has_schema_privilege(n.oid, 'USAGE') AS hidden,
           cardinality(u.parts) > 1 AND n.oid IS NULL                            AS nowhere
    FROM (SELECT name, privilege, at, parse_ident(name) AS parts
          FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (name, privilege, at)) AS u
    LEFT JOIN pg_namespace n ON cardinality(u.parts) > 1 AND n.nspname = u.parts[1]
), missing AS (
    SELECT name, privilege, at
    FROM needed
    WHERE NOT nowhere
      AND CASE WHEN hidden THEN true
               WHEN to_regclass(name) IS NULL THEN false
               ELSE NOT has_table_privilege(to_regclass(name), privilege) END
)
SELECT text FROM (
    SELECT DISTINCT format('GRANT USAGE ON SCHEMA %I TO %I;', schema, current_user) AS text, 0::bigint AS at
    FROM needed WHERE hidden
    UNION ALL
    SELECT format('GRANT %s ON %s TO %I;', string_agg(privilege, ', ' ORDER BY at), name, current_user), min(at)
    FROM missing GROUP BY name
) AS lines
ORDER BY at, text;
