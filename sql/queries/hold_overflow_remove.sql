DELETE FROM {overflow} AS t WHERE {filter} AND t.account_id = ANY ($1::text[]);
