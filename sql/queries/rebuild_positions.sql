-- Up to where the live rows of a projection have the events of a topic, by partition: the
-- furthest that any consumer group has been. A group that was rewound has still been there.
SELECT partition, max(greatest(next_offset, judged_until)), min(topic_id), max(topic_id)
FROM projector_position
WHERE projection = $1 AND topic = $2
GROUP BY partition
ORDER BY partition;
