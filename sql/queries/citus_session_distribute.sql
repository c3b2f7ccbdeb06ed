-- Permits triggers on distributed tables. The trigger that refuses a lower version reads only its
-- own row, so it works on a shard.
SELECT set_config('citus.enable_unsafe_triggers', 'on', true), set_config('statement_timeout', '0', true), set_config('lock_timeout', '5s', true);
