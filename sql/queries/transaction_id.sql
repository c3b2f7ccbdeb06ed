-- Returns the id of the current transaction. With this id, a later query can find out whether the
-- transaction was committed.
SELECT pg_current_xact_id()::text;
