-- A snapshot, by which rows that were written since are found.
SELECT pg_current_snapshot()::text;
