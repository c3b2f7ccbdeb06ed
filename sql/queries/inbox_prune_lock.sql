-- Only one prunes a handler at a time; the others have nothing to do then.
SELECT pg_try_advisory_xact_lock(hashtextextended('inbox ' || $1, 7215));
