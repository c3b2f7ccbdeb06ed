-- Returns the time before which markers of a handler may have been deleted, or null if no marker
-- was ever deleted. The caller compares this time with one that may be from another clock, so a
-- margin ($2) is added. No margin is added to a time of the last day. Otherwise, with a short
-- retention, markers of recent failures would count as deleted.
SELECT (SELECT CASE WHEN until < clock_timestamp() - interval '1 day' THEN until + $2::interval ELSE until END
        FROM inbox_pruned WHERE handler = $1);
