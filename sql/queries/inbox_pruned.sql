-- Returns the time before which markers of a handler may have been deleted. The result is null if
-- no marker was ever deleted.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1);
