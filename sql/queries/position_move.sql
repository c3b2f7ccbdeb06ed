-- Moves the position only from what this writer knows.
UPDATE projector_position
SET next_offset = $6, leader_epoch = $7, leader_epoch_at = $6,
    judged_until = $8, judged_epoch = $9, judged_epoch_at = $8,
    breaker_window = $10, breaker_reason = nullif($11::text, ''), updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4 AND next_offset = $5;
