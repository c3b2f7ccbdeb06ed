-- Acquires the lock that a replay and a discard of one projection need, until the end of the
-- transaction. Replays share it. A discard needs it alone, so that it finds what a replay has applied.
SELECT {lock}(hashtextextended('projector discards ' || $1, 0));
