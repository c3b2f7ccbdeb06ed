-- Moves the positions of one consumer group in one topic. A position moves only if it still has the
-- fence and the offset that its writer has read.
UPDATE projector_position AS p
SET next_offset = m.next_offset, leader_epoch = m.leader_epoch, leader_epoch_at = m.next_offset,
    judged_until = m.judged_until, judged_epoch = m.judged_epoch, judged_epoch_at = m.judged_until,
    breaker_window = m.breaker_window, breaker_reason = nullif(m.breaker_reason, ''), updated_at = now()
FROM unnest($3::int4[], $4::int8[], $5::int8[], $6::int8[], $7::int4[], $8::int8[], $9::int4[], $10::bytea[], $11::text[])
    AS m (partition, fence, previous_offset, next_offset, leader_epoch, judged_until, judged_epoch, breaker_window, breaker_reason)
WHERE p.consumer_group = $1 AND p.topic = $2 AND p.partition = m.partition AND p.fence = m.fence AND p.next_offset = m.previous_offset;
