-- Returns the REVOKE statements for the grants on tables that let operators write without approval:
-- grants to the operators role, to a member of it or to PUBLIC. sql/roles.sql knows only the tables
-- of the projector, and a rebuild proposes grants on the tables of a custom projection. A REVOKE on
-- a table also revokes the privileges on its columns.
WITH grants AS (
    SELECT c.oid, a.grantee, a.privilege_type
    FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname <> 'repair_request'
    UNION ALL
    SELECT c.oid, a.grantee, a.privilege_type
    FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid CROSS JOIN aclexplode(t.attacl) a
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname <> 'repair_request'
)
SELECT format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER ON %s FROM %s;', string_agg(DISTINCT g.oid::regclass::text, ', '),
              coalesce(quote_ident(r.rolname), 'PUBLIC'))
FROM grants g
LEFT JOIN pg_roles r ON r.oid = g.grantee
WHERE g.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
  AND to_regrole('projector_operator') IS NOT NULL
  AND (g.grantee = 0 OR r.oid IN ({operators}) AND r.oid NOT IN (SELECT relowner FROM pg_class WHERE oid = g.oid))
GROUP BY r.rolname
ORDER BY r.rolname;
