DELETE FROM {overflow} AS t WHERE {of_t}t.account_id = ANY ($1::text[]);
