-- Where Citus is: it can plan nothing of which it does not know the values.
SELECT set_config('plan_cache_mode', 'force_custom_plan', false) FROM pg_extension WHERE extname = 'citus';
