-- Returns the current versions of the given accounts.
SELECT account_id, version FROM {account} WHERE {of}account_id = ANY ($1::text[]);
