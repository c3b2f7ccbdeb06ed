-- Returns the missing grants on the database itself, one per row. The file sql/roles.sql grants
-- them. They can be missing after a restore, because pg_dump does not save them. There is no row if
-- roles.sql was never run and so has not created the function projector_contained.
SELECT missing
FROM (
    SELECT 1 AS at, format('CREATE on database %I for %s', current_database(), p.proowner::regrole) AS missing
    FROM pg_proc p
    WHERE p.oid = to_regprocedure('projector_rebuild_tables(text[], text[])')
      AND NOT has_database_privilege(p.proowner, current_database(), 'CREATE')
    UNION ALL
    SELECT 2, format('CONNECT on database %I for %s', current_database(), string_agg(role, ', ' ORDER BY role))
    FROM unnest(ARRAY['projector_migrator', 'projector_runtime', 'projector_operator', 'projector_approver', 'projector_reader']) AS role
    WHERE to_regrole(role) IS NOT NULL AND NOT has_database_privilege(role, current_database(), 'CONNECT')
    HAVING count(*) > 0
    UNION ALL
    SELECT 3, format('the revocation of %s on database %I from PUBLIC', string_agg(privilege, ', ' ORDER BY privilege), current_database())
    FROM unnest(ARRAY['CONNECT', 'TEMPORARY']) AS privilege
    WHERE has_database_privilege('public', current_database(), privilege)
    HAVING count(*) > 0
) AS needed
WHERE to_regprocedure('projector_contained(text, boolean, text)') IS NOT NULL
ORDER BY at;
