-- Takes out the rows the topic has no event of.
DELETE FROM {table} t
USING projector_rebuild.{difference} d
WHERE d._chosen AND d._kind = 'unknown' AND ({key_t}) = ({key_d});
