-- Returns the given messages whose marker is at least an interval ($3) newer than the time up to
-- which the inbox was pruned. Pruning deletes these markers only after it has advanced by this
-- interval.
SELECT message_id FROM inbox
WHERE handler = $1 AND message_id = ANY ($2::text[])
  AND processed_at >= coalesce((SELECT until FROM inbox_pruned WHERE handler = $1), '-infinity') + $3::interval;
