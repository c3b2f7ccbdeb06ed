-- What was to be changed and is not.
SELECT ROW ({key_d})::text, d._kind FROM projector_rebuild.{difference} d WHERE NOT d._chosen AND (d._kind <> 'unknown' OR $1);
