-- The versions the given accounts have now.
SELECT account_id, version FROM {account} WHERE {of}account_id = ANY ($1::text[]);
