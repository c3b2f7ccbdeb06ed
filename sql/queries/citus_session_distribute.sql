-- The trigger that refuses a lower version looks at its own row only, so it may be on a shard.
SELECT set_config('citus.enable_unsafe_triggers', 'on', true), set_config('statement_timeout', '0', true), set_config('lock_timeout', '5s', true);
