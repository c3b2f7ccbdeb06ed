-- Deletes the rows that have no event in the topic.
DELETE FROM {table} AS t
USING projector_rebuild.{noted} AS d
WHERE {of_t}d._kind = 'unknown' AND ({key_t}) = ({key_d});
