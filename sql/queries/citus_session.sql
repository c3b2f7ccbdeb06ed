-- For a database with Citus, which can only plan queries whose parameter values it knows.
SELECT set_config('plan_cache_mode', 'force_custom_plan', false) FROM pg_extension WHERE extname = 'citus';
