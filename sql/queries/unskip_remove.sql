-- Deletes a row, which is then inserted again with a lower version. An update may not decrease a
-- version.
DELETE FROM {account} WHERE {of}account_id = $1 AND version = $2;
