-- Inserts into the live inbox the markers that the comparison has found missing. The rebuilt sums
-- contain the events of these markers.
INSERT INTO inbox (message_id, handler)
SELECT d.message_id, $1
FROM projector_rebuild.difference_inbox d
WHERE d._kind = 'missing'
ORDER BY d.message_id COLLATE "C"
ON CONFLICT (message_id, handler) DO NOTHING;
