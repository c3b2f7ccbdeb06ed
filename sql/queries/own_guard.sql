-- What this transaction has written to each of the projector's own tables ($1) so far, and the
-- file that the projection ($2) was last run from. A truncated table has another file node.
SELECT (SELECT array_agg(concat_ws('/', pg_stat_get_xact_tuples_inserted(t.id), pg_stat_get_xact_tuples_updated(t.id),
                                   pg_stat_get_xact_tuples_deleted(t.id), pg_relation_filenode(t.id)) ORDER BY t.at)
        FROM (SELECT to_regclass(name)::oid AS id, at FROM unnest($1::text[]) WITH ORDINALITY AS n (name, at)) AS t),
       coalesce((SELECT sha256 FROM projection_file WHERE projection = $2), '');
