-- The present snapshot. Rows that are written later can be found with it.
SELECT pg_current_snapshot()::text;
