-- projection: loyalty_points
-- mode: ordered
-- types: PointsEarned, PointsSpent
-- tables: loyalty
--
-- This projection stores the points of each account. The mode is ordered, so an event after a gap
-- waits, and the points are always the sum up to one version.
INSERT INTO loyalty (account_id, points, version)
SELECT account_id,
       sum(CASE event_type WHEN 'PointsSpent' THEN -1 ELSE 1 END * (data->>'points')::bigint),
       max(version)
FROM new_events
GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE
    SET points = loyalty.points + EXCLUDED.points, version = EXCLUDED.version;
