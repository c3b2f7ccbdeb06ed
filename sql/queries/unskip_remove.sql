-- A row that is written again at a lower version: no update may lower it.
DELETE FROM {account} WHERE {of}account_id = $1 AND version = $2;
