-- Returns how many rows have to be changed. If rows belong to accounts, it returns the number of
-- accounts.
SELECT count({counted}) FROM projector_rebuild.{noted} WHERE _kind <> 'unknown' OR $1;
