-- Returns how many rows this transaction has written so far to each of the tables of the projector
-- ($1). In a rebuild, the second column has the number of rows written to all tables outside the
-- schema of the rebuild. The last column identifies the file with which the projection ($2) was
-- last run. The file node detects a TRUNCATE, because a truncated table gets a new file node.
SELECT (SELECT array_agg(concat_ws('/', pg_stat_get_xact_tuples_inserted(t.id), pg_stat_get_xact_tuples_updated(t.id),
                                   pg_stat_get_xact_tuples_deleted(t.id), pg_relation_filenode(t.id)) ORDER BY t.at)
        FROM (SELECT to_regclass(name)::oid AS id, at FROM unnest($1::text[]) WITH ORDINALITY AS n (name, at)) AS t),
       CASE WHEN current_schema() = 'projector_rebuild' THEN
           (SELECT concat_ws('/', sum(pg_stat_get_xact_tuples_inserted(c.oid)), sum(pg_stat_get_xact_tuples_updated(c.oid)),
                             sum(pg_stat_get_xact_tuples_deleted(c.oid)), sum(c.relfilenode::bigint))
            FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND c.relpersistence <> 't'
              AND n.nspname NOT IN ('projector_rebuild', 'pg_catalog', 'information_schema'))
       ELSE '' END,
       coalesce((SELECT sha256 FROM projection_file WHERE projection = $2), '');
