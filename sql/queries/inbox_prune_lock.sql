-- Only one session prunes a handler at a time. The others skip it.
SELECT pg_try_advisory_xact_lock(hashtextextended('inbox ' || $1, 7215));
