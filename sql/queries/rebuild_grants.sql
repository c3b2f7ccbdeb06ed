-- Returns the GRANT statements for the privileges that a rebuild lacks on the tables $1. The
-- current login needs the privileges $2, and the owner of the function that copies the tables needs
-- SELECT. If the login has a role of sql/roles.sql, the statements grant to this role and not to
-- the login itself.
WITH running AS (
    SELECT coalesce((
        SELECT r.rolname
        FROM unnest(ARRAY['projector_operator', 'projector_approver', 'projector_migrator']) WITH ORDINALITY AS u (role, at)
        JOIN pg_roles r ON r.rolname = u.role
        WHERE pg_has_role(r.oid, 'USAGE')
        ORDER BY at LIMIT 1), current_user) AS role
)
SELECT format('GRANT %s ON %s TO %I;', string_agg(privilege, ', ' ORDER BY privilege), name, role)
FROM (
    SELECT name, privilege, running.role
    FROM unnest($1::text[]) AS t (name) CROSS JOIN unnest($2::text[]) AS p (privilege) CROSS JOIN running
    WHERE NOT has_table_privilege(to_regclass(name), privilege)
    UNION
    SELECT name, 'SELECT', pg_get_userbyid(f.proowner)
    FROM unnest($1::text[]) AS t (name) CROSS JOIN pg_proc f
    WHERE f.oid = 'projector_rebuild_tables(text[], text[])'::regprocedure
      AND NOT has_table_privilege(f.proowner, to_regclass(name), 'SELECT')
) AS needed
GROUP BY name, role
ORDER BY role, name;
