-- Tries to lock the pruning of a handler, so that only one session prunes a handler at a time.
-- Sessions that do not get the lock skip the handler.
SELECT pg_try_advisory_xact_lock(hashtextextended('inbox ' || $1, 7215));
