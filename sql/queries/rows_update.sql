-- Puts the rebuilt rows in the place of those that differ.
UPDATE {table} t
SET {set_rebuilt}
FROM projector_rebuild.{difference} d
JOIN projector_rebuild.{table} s ON ({key_s}) = ({key_d})
WHERE d._chosen AND d._kind = 'different' AND ({key_t}) = ({key_d});
