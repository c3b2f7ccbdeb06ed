-- How many accounts, or rows where they are of none, are to be changed.
SELECT count({counted}) FROM projector_rebuild.{difference} WHERE _kind <> 'unknown' OR $1;
