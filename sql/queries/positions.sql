-- Returns the positions of a consumer group in a topic. A leader epoch is valid only for the offset
-- for which it was stored (migration 00005). The reason of a halt is valid only while the owner
-- that has stored it still owns the partition. The query position_load returns all positions. The
-- query position_lock returns and locks the one of partition $3.
SELECT partition, next_offset, CASE WHEN leader_epoch_at = next_offset THEN leader_epoch ELSE -1 END,
       judged_until, CASE WHEN judged_epoch_at = judged_until THEN judged_epoch ELSE -1 END,
       topic_id, owner, fence, coalesce(stopped_reason, ''), CASE WHEN stopped_reason IS NULL THEN -1 ELSE coalesce(stopped_end, -1) END,
       CASE WHEN halted_fence = fence THEN halted_reason ELSE '' END, set_by_hand,
       breaker_window, coalesce(breaker_through, 0), coalesce(breaker_reason, ''), coalesce(paused_reason, ''), projection, coalesce(mapping, '')
FROM projector_position
WHERE consumer_group = $1 AND topic = $2
{locked}  AND partition = $3 FOR UPDATE
;
