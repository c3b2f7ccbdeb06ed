-- Writes the values of the rebuilt rows into the live rows that differ.
UPDATE {table} AS t
SET {set_rebuilt}
FROM projector_rebuild.{noted} AS d
JOIN {shadow} AS s ON ({key_s}) = ({key_d})
WHERE {of_t}d._kind = 'different' AND ({key_t}) = ({key_d});
