-- How many rows are to be changed, or accounts where rows are of accounts.
SELECT count({counted}) FROM projector_rebuild.{noted} WHERE _kind <> 'unknown' OR $1;
