-- Puts in what was rebuilt of the accounts ($2) of a projection ($1).
INSERT INTO {table}
SELECT s.* FROM projector_rebuild.{table} s WHERE s.projection = $1 AND s.account_id = ANY ($2::text[]);
