-- Returns the time before which the marker of a failed event may have been deleted, or null if no
-- marker was deleted. The time of the failure is from another clock, so an interval ($2) is added.
-- It is not added for a day after the pruning. Otherwise a pruning with a short retention would make
-- recent failures doubtful.
SELECT (SELECT CASE WHEN until < clock_timestamp() - interval '1 day' THEN until + $2::interval ELSE until END
        FROM inbox_pruned WHERE handler = $1);
