-- Deletes the range of an account, because no event is beyond its park limit any more.
DELETE FROM {overflow} WHERE {of}account_id = $1;
