-- Takes rows off the list of those to be removed that come further on in the topic.
DELETE FROM projector_rebuild.{difference} d
WHERE d._kind = 'unknown' AND EXISTS (SELECT FROM projector_rebuild.{table} s WHERE ({key_s}) = ({key_d}))
RETURNING ROW ({key_d})::text, d._kind;
