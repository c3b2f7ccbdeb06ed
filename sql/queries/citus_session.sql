-- Prevents generic plans if the database has Citus, because Citus can only plan a query whose
-- parameter values it knows.
SELECT set_config('plan_cache_mode', 'force_custom_plan', false) FROM pg_extension WHERE extname = 'citus';
