-- Sets a position to the offset that a person has chosen ($4), in the current topic ($5). A stopped
-- partition then continues. The parameters $6 and $7 are the offset up to which records were ever
-- processed, and its leader epoch. The parameter $8 is the leader epoch of the position.
UPDATE projector_position
SET next_offset = $4, leader_epoch = $8, leader_epoch_at = $4,
    judged_until = $6, judged_epoch = $7, judged_epoch_at = $6, topic_id = $5,
    breaker_through = CASE WHEN topic_id = $5 THEN breaker_through END,
    stopped_reason = NULL, stopped_end = NULL, set_by_hand = true, fence = fence + 1, updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3;
