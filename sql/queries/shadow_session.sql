-- Turns off the time limit for an idle session. The session that holds the lock of a rebuild is idle
-- while the topic is read. PostgreSQL 13 does not have this setting.
SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout';
