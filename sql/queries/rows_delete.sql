-- Takes out the rows that have no event in the topic.
DELETE FROM {table} AS t
USING projector_rebuild.{noted} AS d
WHERE d._kind = 'unknown' AND ({key_t}) = ({key_d}) AND {filter};
