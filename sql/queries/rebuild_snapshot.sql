-- A snapshot, to tell later what was written since, and its time.
SELECT pg_current_snapshot()::text, clock_timestamp()::text;
