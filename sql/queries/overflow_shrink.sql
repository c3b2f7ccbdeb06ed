-- Fewer events are beyond the park limit of an account.
UPDATE {overflow} SET lowest_version = $2, highest_version = $3, events = $4 WHERE {of}account_id = $1;
