-- Lets the session that holds the lock of a rebuild be idle while the shadow tables are filled. If the
-- role or the database has a time limit for idle sessions, PostgreSQL would end this session, and the
-- lock with it. PostgreSQL 13 has no such limit.
SELECT set_config('idle_session_timeout', '0', false) WHERE current_setting('server_version_num')::int >= 140000;
