-- The grants on tables ($1) that are missing for a rebuild, as statements: this login needs the
-- privileges $2, and the owner of the function that copies the tables reads them.
SELECT format('GRANT %s ON %s TO %I;', string_agg(privilege, ', ' ORDER BY privilege), name, role)
FROM (
    SELECT name, privilege, current_user::name AS role
    FROM unnest($1::text[]) AS t (name) CROSS JOIN unnest($2::text[]) AS p (privilege)
    UNION
    SELECT name, 'SELECT', pg_get_userbyid(f.proowner)
    FROM unnest($1::text[]) AS t (name) CROSS JOIN pg_proc f
    WHERE f.oid = 'projector_rebuild_tables(text[], text[])'::regprocedure
) AS needed
WHERE NOT has_table_privilege(role, to_regclass(name), privilege)
GROUP BY name, role
ORDER BY role, name;
