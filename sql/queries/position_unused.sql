-- Returns the positions of a consumer group in a topic. The columns of each position say whether
-- another group of the projection has processed all records of the partition that this group has
-- processed, whether this role may delete the position, and whether it is of a custom projection
-- that compares versions.
SELECT p.partition, p.next_offset, p.fence, p.projection,
       EXISTS (SELECT FROM projector_position o
               WHERE o.projection = p.projection AND o.topic = p.topic AND o.topic_id = p.topic_id
                 AND o.partition = p.partition AND o.consumer_group <> p.consumer_group
                 AND o.next_offset >= p.judged_until),
       has_table_privilege('projector_position', 'DELETE'),
       EXISTS (SELECT FROM projection_file f WHERE f.projection = p.projection AND f.mode = 'ordered')
FROM projector_position p
WHERE p.consumer_group = $1 AND p.topic = $2
ORDER BY p.partition;
