SELECT partition, next_offset, judged_until, topic_id, owner, fence
FROM projector_position
WHERE consumer_group = $1 AND topic = $2;
