-- Takes all rows off the list.
DELETE FROM projector_rebuild.{difference} d
RETURNING ROW ({key_d})::text, d._kind;
