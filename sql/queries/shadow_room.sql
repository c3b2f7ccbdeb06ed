-- What the tables of a rebuild take, and whether they may be made.
SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint, has_database_privilege(current_database(), 'CREATE')
FROM unnest($1::text[]) AS name;
