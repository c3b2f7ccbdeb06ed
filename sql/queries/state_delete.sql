-- Takes out what there is of the accounts ($2) of a projection ($1).
DELETE FROM {table} t WHERE t.projection = $1 AND t.account_id = ANY ($2::text[]);
