-- Returns which of the given messages have a marker that is newer than the pruned time by at least
-- an interval ($3). The pruned time is the time up to which the inbox was pruned. A concurrent
-- pruning can delete these markers only if it advances the pruned time by more than this interval.
SELECT message_id FROM inbox
WHERE handler = $1 AND message_id = ANY ($2::text[])
  AND processed_at >= coalesce((SELECT until FROM inbox_pruned WHERE handler = $1), '-infinity') + $3::interval;
