-- The audit trail has events that were fetched from the producer's outbox, too.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- nobody may wait behind this for long: the next `migrate` does it then
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open', 'fetch')) NOT VALID;

-- +goose Down
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open')) NOT VALID;
