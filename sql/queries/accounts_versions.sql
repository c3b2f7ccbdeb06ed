-- Returns the versions of accounts ($1).
SELECT account_id, version FROM {from} AS t WHERE account_id = ANY ($1::text[]);
