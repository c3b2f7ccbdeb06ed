-- Prevents pruning of a handler until the transaction ends. See inbox_prune_lock.sql.
SELECT pg_advisory_xact_lock(hashtextextended('inbox ' || $1, 7215));
