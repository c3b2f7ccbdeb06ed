-- Takes out the rows of accounts ($1): those that are put in again, too, for a version never
-- decreases by an update.
DELETE FROM {table} AS t WHERE {of_t}t.account_id = ANY ($1::text[]);
