-- Returns those of the given messages whose marker is newer than the time up to which the inbox was
-- pruned, by at least an interval ($3). So these markers are deleted only after pruning has
-- advanced by $3.
SELECT message_id FROM inbox
WHERE handler = $1 AND message_id = ANY ($2::text[])
  AND processed_at >= coalesce((SELECT until FROM inbox_pruned WHERE handler = $1), '-infinity') + $3::interval;
