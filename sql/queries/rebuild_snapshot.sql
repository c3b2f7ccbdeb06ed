-- Returns the current snapshot. A later query uses this snapshot to find rows that were written
-- after it.
SELECT pg_current_snapshot()::text;
