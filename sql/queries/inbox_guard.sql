-- What keeps a pruned inbox from being asked for more than it knows: before when
-- markers may be gone (null: none was pruned), and how far other consumer groups of
-- the projection have brought this partition of this very topic, with the leader epochs
-- there (migration 00005). A topic id that is not known ($5) may be any.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1),
       coalesce(array_agg(o.judged_until), '{}'),
       coalesce(array_agg(CASE WHEN o.judged_epoch_at = o.judged_until THEN o.judged_epoch ELSE -1 END), '{}')
FROM projector_position o
JOIN projector_position mine USING (topic, partition)
WHERE o.projection = $1 AND o.topic = $2 AND o.partition = $3 AND o.consumer_group <> $4
  AND mine.consumer_group = $4
  AND (o.topic_id = mine.topic_id OR o.topic_id = ANY ($5::text[]) OR mine.topic_id = ANY ($5::text[]));
