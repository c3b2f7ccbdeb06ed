-- What keeps a pruned inbox from being asked for more than it knows: before when
-- markers may be gone (null: none was pruned), and how far other consumer groups of
-- the projection have brought this partition of this very topic.
SELECT (SELECT until FROM inbox_pruned WHERE handler = $1),
       coalesce((SELECT max(o.judged_until)
                 FROM projector_position o
                 JOIN projector_position mine USING (topic, partition, topic_id)
                 WHERE o.projection = $1 AND o.topic = $2 AND o.partition = $3 AND o.consumer_group <> $4
                   AND mine.consumer_group = $4), 0);
