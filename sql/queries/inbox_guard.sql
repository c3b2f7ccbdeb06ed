-- Returns what a consumer needs to decide whether a pruned inbox still has the markers of all
-- messages that will be read. The first value is the time before which markers may have been
-- deleted, or null if none was. The others are the offsets up to which other consumer groups of the
-- projection have ever processed this partition of the same topic, and the leader epochs of these
-- offsets (see migration 00005). An unknown topic id ($5) matches every topic id.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1),
       coalesce(array_agg(o.judged_until), '{}'),
       coalesce(array_agg(CASE WHEN o.judged_epoch_at = o.judged_until THEN o.judged_epoch ELSE -1 END), '{}')
FROM projector_position o
JOIN projector_position mine USING (topic, partition)
WHERE o.projection = $1 AND o.topic = $2 AND o.partition = $3 AND o.consumer_group <> $4
  AND mine.consumer_group = $4
  AND (o.topic_id = mine.topic_id OR o.topic_id = ANY ($5::text[]) OR mine.topic_id = ANY ($5::text[]));
