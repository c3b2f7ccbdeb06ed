-- A query that reads all rows does not benefit from an index.
SELECT set_config('enable_seqscan', 'on', true);
