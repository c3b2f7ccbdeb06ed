-- Deletes a row before it is inserted again at a lower version, because an update may not lower it.
DELETE FROM {account} WHERE {of}account_id = $1 AND version = $2;
