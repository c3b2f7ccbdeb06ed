-- Takes out of sums what the topic has no event of: what consumers have added since stays in.
UPDATE {table} t
SET {set_subtracted}
FROM projector_rebuild.{difference} d
WHERE d._chosen AND d._kind = 'unknown' AND ({key_t}) = ({key_d});
