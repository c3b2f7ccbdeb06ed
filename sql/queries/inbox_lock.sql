-- Locks the pruning of a handler until the transaction ends. With inbox_prune_lock, only one session
-- prunes a handler at a time, and sessions that do not get the lock skip the handler. The query
-- inbox_prune_wait waits for the lock, and so prevents pruning.
SELECT {lock}(hashtextextended('inbox ' || $1, 7215));
