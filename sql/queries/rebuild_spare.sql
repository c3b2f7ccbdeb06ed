-- Takes accounts off the list that is to be removed.
DELETE FROM projector_rebuild.difference
WHERE kind = 'unknown' AND account_id = ANY ($1::text[])
RETURNING account_id;
