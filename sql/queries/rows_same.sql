-- Deletes the note about a live row whose key is equal to the key of a rebuilt row and only has another
-- text, such as 1.0 and 1.00. The note about the rebuilt row stays.
DELETE FROM projector_rebuild.{noted} AS d
USING projector_rebuild.{noted} AS s
WHERE d._kind = 'unknown' AND s._kind = 'missing' AND ({key_d}) = ({key_s});
