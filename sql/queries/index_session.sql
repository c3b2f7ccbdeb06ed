-- Permits sequential scans, because an index does not help a query that reads all rows.
SELECT set_config('enable_seqscan', 'on', true);
