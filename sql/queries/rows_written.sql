-- Notes the keys of live and rebuilt rows that were written after the snapshot of the comparison
-- ($1). The age of the transaction that has written a row shows whether the row is one of them.
-- Rows of transactions that began after this transaction count too, and their age is negative. The
-- age has a lower limit as well, because the age of a frozen row may have any value.
WITH since AS (
    SELECT age(pg_snapshot_xmin($1::pg_snapshot)::xid) AS first, age(pg_snapshot_xmax(pg_current_snapshot())::xid) AS last
)
INSERT INTO projector_rebuild.{noted} ({key})
SELECT {key}
FROM (
    SELECT {key} FROM {table} AS t WHERE {of_t}age(t.xmin) BETWEEN (SELECT last FROM since) AND (SELECT first FROM since)
    UNION
    SELECT {key} FROM projector_rebuild.{table} AS t WHERE {of_t}age(t.xmin) BETWEEN (SELECT last FROM since) AND (SELECT first FROM since)
) AS w
WHERE NOT EXISTS (SELECT FROM projector_rebuild.{noted} AS t WHERE ({key_t}) = ({key_w}));
