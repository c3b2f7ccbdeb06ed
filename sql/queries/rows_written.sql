-- Notes the keys of live and rebuilt rows that were written after the comparison, according to the
-- snapshot of the comparison.
INSERT INTO projector_rebuild.{noted} ({key})
SELECT {key}
FROM (
    SELECT {key} FROM {table} AS t WHERE {of_t}age(t.xmin) BETWEEN 0 AND age(pg_snapshot_xmin($1::pg_snapshot)::xid)
    UNION
    SELECT {key} FROM projector_rebuild.{table} AS t WHERE {of_t}age(t.xmin) BETWEEN 0 AND age(pg_snapshot_xmin($1::pg_snapshot)::xid)
) AS w
WHERE NOT EXISTS (SELECT FROM projector_rebuild.{noted} AS t WHERE ({key_t}) = ({key_w}));
