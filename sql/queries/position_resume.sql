-- Ends a pause, closes the breaker and empties its window. The breaker does not count records below
-- breaker_through. Without an offset ($4), breaker_through stays unchanged.
UPDATE projector_position
SET paused_reason = NULL, breaker_reason = NULL, breaker_window = NULL,
    breaker_through = coalesce($4, breaker_through), fence = fence + 1, updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3;
