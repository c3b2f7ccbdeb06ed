-- Stores the time before which markers may have been deleted.
INSERT INTO inbox_pruned AS p (handler, until) VALUES ($1, $2)
ON CONFLICT (handler) DO UPDATE SET until = greatest(p.until, EXCLUDED.until);
