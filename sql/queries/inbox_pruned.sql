-- The time before which markers of a handler may have been deleted; null: none was ever pruned.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1);
