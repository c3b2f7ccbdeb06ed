-- Returns the time before which markers of a handler may have been deleted. It is null if none was
-- ever pruned.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1);
