-- Locks the rows that are to be changed, behind the positions and in the order of their keys.
SELECT count(*)
FROM (
    SELECT FROM {table} t
    JOIN projector_rebuild.{difference} d ON ({key_t}) = ({key_d})
    WHERE d._kind <> 'unknown' OR $1
    ORDER BY {key_order}
    FOR UPDATE OF t
) AS locked;
