-- Returns the id of the current transaction and the start of the server. With them, a later query can
-- find out whether the transaction was committed.
SELECT pg_current_xact_id()::text, pg_postmaster_start_time();
