-- Returns how many rows have to be changed. Rows without an event in the topic count only if $1 is
-- true. If rows belong to accounts, it returns the number of accounts.
SELECT count({counted}) FROM projector_rebuild.{noted} WHERE _kind <> 'unknown' OR $1;
