-- Which of the given messages are marked, and stay so while the inbox is pruned no further
-- than by an interval ($3).
SELECT message_id FROM inbox
WHERE handler = $1 AND message_id = ANY ($2::text[])
  AND processed_at >= coalesce((SELECT until FROM inbox_pruned WHERE handler = $1), '-infinity') + $3::interval;
