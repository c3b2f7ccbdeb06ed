-- Marks the events that were rebuilt since the tables were compared ($2).
INSERT INTO inbox (message_id, handler)
SELECT s.message_id, s.handler
FROM projector_rebuild.inbox AS s
WHERE s.handler = $1 AND s.processed_at >= $2::timestamptz
ORDER BY s.message_id COLLATE "C"
ON CONFLICT (message_id, handler) DO NOTHING;
