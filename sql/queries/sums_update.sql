-- Adds to sums what they were wrong by when they were compared, with the rebuilt ones' number
-- of decimals: what consumers have added since stays in.
UPDATE {table} t
SET {set_corrected}
FROM projector_rebuild.{difference} d
WHERE d._chosen AND d._kind = 'different' AND ({key_t}) = ({key_d});
