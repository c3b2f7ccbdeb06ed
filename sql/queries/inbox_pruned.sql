-- Returns the time before which markers of a handler may have been deleted. The result is null if
-- no marker was ever deleted. A time that is compared with the result may be from another clock, so
-- a margin ($2) is added. It is not added for a day after the pruning. Otherwise a pruning with a
-- short retention would make recent failures doubtful.
SELECT (SELECT CASE WHEN until < clock_timestamp() - interval '1 day' THEN until + $2::interval ELSE until END
        FROM inbox_pruned WHERE handler = $1);
