-- Deletes the live rows for which the topic has no event.
DELETE FROM {table} AS t
USING projector_rebuild.{noted} AS d
WHERE {of_t}d._kind = 'unknown' AND ({key_t}) = ({key_d});
