-- Notes before when markers may be gone.
INSERT INTO inbox_pruned AS p (handler, until) VALUES ($1, $2)
ON CONFLICT (handler) DO UPDATE SET until = greatest(p.until, EXCLUDED.until);
