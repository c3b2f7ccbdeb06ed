-- Inserts a position. Its mapping is the mapping of the other positions of the projection. If no
-- other position has a mapping, it is the mapping of the owner ($8).
INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection, mapping)
VALUES ($1, $2, $3, $4, $4, $5, $6, 0, $7,
        coalesce((SELECT max(mapping) FROM projector_position WHERE projection = $7), nullif($8, '')))
ON CONFLICT (consumer_group, topic, partition) DO NOTHING;
