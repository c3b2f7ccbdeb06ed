-- What was to be changed and is not.
SELECT account_id, kind FROM projector_rebuild.difference WHERE swap IS NULL AND (kind <> 'unknown' OR $1);
