-- Returns the current snapshot. With it, rows that are written later can be found.
SELECT pg_current_snapshot()::text;
