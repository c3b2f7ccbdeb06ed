-- Returns the lowest hash of each shard of a table, in ascending order.
SELECT shardminvalue::int4 FROM pg_dist_shard WHERE logicalrelid = to_regclass($1) ORDER BY 1;
