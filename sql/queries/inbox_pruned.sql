-- Before when markers of a handler may be gone; null: none ever was pruned.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1);
