-- Nothing is beyond the park limit of an account any more.
DELETE FROM {overflow} WHERE {of}account_id = $1;
