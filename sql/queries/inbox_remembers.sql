-- Which of the given messages are marked, and stay so for an hour at least: pruning goes on.
SELECT message_id FROM inbox
WHERE handler = $1 AND message_id = ANY ($2::text[])
  AND processed_at >= coalesce((SELECT until FROM inbox_pruned WHERE handler = $1), '-infinity') + interval '1 hour';
