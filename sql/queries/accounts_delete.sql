-- Deletes the rows of accounts ($1). Rows that will be replaced are deleted first, because an
-- update may not decrease a version.
DELETE FROM {table} AS t WHERE {of_t}t.account_id = ANY ($1::text[]);
