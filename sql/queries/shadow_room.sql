-- Returns the space that the tables of a rebuild need, and the privilege that is missing to create
-- them. The login needs EXECUTE on the function, and the owner of the function needs CREATE on the
-- database.
SELECT coalesce((SELECT sum(pg_total_relation_size(to_regclass(name))) FROM unnest($1::text[]) AS name), 0)::bigint,
       CASE WHEN NOT has_function_privilege(p.oid, 'EXECUTE')
                 THEN format('EXECUTE on function %s for %s', p.oid::regprocedure, current_user)
            WHEN NOT has_database_privilege(p.proowner, current_database(), 'CREATE')
                 THEN format('CREATE on database %s for %s', current_database(), p.proowner::regrole)
            WHEN NOT pg_has_role(p.proowner, n.nspowner, 'USAGE')
                 THEN format('ownership of schema %s for %s', n.nspname, p.proowner::regrole)
            ELSE '' END
FROM pg_proc p
LEFT JOIN pg_namespace n ON n.nspname = 'projector_rebuild'
WHERE p.oid = 'projector_rebuild_tables(text[], text[])'::regprocedure;
