-- How many rows are to be changed, or how many accounts if rows belong to accounts.
SELECT count({counted}) FROM projector_rebuild.{noted} WHERE _kind <> 'unknown' OR $1;
