-- Returns the number of shards, the size and the approximate number of rows of the given tables. A
-- table that is not distributed has 0 shards.
SELECT t.name, count(s.shardid), pg_total_relation_size(to_regclass(t.name)::oid), greatest(max(c.reltuples), 0)::int8
FROM unnest($1::text[]) WITH ORDINALITY AS t (name, n)
JOIN pg_class c ON c.oid = to_regclass(t.name)
LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid AND p.partmethod = 'h'
LEFT JOIN pg_dist_shard s ON s.logicalrelid = p.logicalrelid
GROUP BY t.name, t.n
ORDER BY t.n;
