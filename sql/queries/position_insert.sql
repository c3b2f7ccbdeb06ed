-- The mapping is that of the projection's other positions, or the owner's ($8) if there are none.
INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection, mapping)
VALUES ($1, $2, $3, $4, $4, $5, $6, 0, $7,
        coalesce((SELECT max(mapping) FROM projector_position WHERE projection = $7), nullif($8, '')))
ON CONFLICT (consumer_group, topic, partition) DO NOTHING;
