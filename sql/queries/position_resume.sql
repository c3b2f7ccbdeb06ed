-- Ends a pause, closes the breaker and empties its window. Without an offset, up to where
-- records do not count stays as it was.
UPDATE projector_position
SET paused_reason = NULL, breaker_reason = NULL, breaker_window = NULL,
    breaker_through = coalesce($4, breaker_through), fence = fence + 1, updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3;
