-- Locks the rows that may be changed, in the order of their keys.
SELECT count(*)
FROM (
    SELECT FROM {table} AS t
    JOIN projector_rebuild.{noted} AS d ON ({key_t}) = ({key_d})
    WHERE {of_t}true
    ORDER BY {key_order}
    FOR UPDATE OF t
) AS locked;
