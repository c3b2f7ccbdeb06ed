-- An epoch counts while it belongs to the offset beside it: migration 00005.
SELECT partition, next_offset, CASE WHEN leader_epoch_at = next_offset THEN leader_epoch ELSE -1 END,
       judged_until, CASE WHEN judged_epoch_at = judged_until THEN judged_epoch ELSE -1 END,
       topic_id, owner, fence, stopped_reason
FROM projector_position
WHERE consumer_group = $1 AND topic = $2;
