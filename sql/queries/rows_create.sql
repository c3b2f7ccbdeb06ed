-- A table like a live one.
CREATE UNLOGGED TABLE projector_rebuild.{table} (LIKE {table} INCLUDING ALL);
