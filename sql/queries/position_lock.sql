SELECT next_offset, judged_until, topic_id, owner, fence, projection
FROM projector_position
WHERE consumer_group = $1 AND topic = $2 AND partition = $3
FOR UPDATE;
