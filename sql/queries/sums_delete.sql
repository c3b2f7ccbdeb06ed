-- Takes out the rows of which nothing is left.
DELETE FROM {table} t
USING projector_rebuild.{difference} d
WHERE d._chosen AND d._kind = 'unknown' AND ({key_t}) = ({key_d}) AND {all_zero};
