-- projection: loyalty_points
-- mode: ordered
-- types: PointsEarned, PointsSpent
-- tables: loyalty
--
-- The points of each account. The mode is ordered, so the points are those after a version: an event
-- after a gap waits.
INSERT INTO loyalty (account_id, points, version)
SELECT account_id,
       sum(CASE event_type WHEN 'PointsSpent' THEN -1 ELSE 1 END * (data->>'points')::bigint),
       max(version)
FROM new_events
GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE
    SET points = loyalty.points + EXCLUDED.points, version = EXCLUDED.version;
