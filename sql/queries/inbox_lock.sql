-- Locks the pruning of the inbox until the transaction ends. With inbox_prune_lock, only one session
-- prunes at a time, and others get 55P03. The query inbox_prune_wait waits for the lock, and so prevents
-- pruning. An advisory lock is not safe for this, because any login that may connect may hold it. This
-- lock needs a right to change the table. It does not conflict with those that change rows.
LOCK TABLE inbox_pruned IN SHARE UPDATE EXCLUSIVE MODE {nowait};
