-- The audit trail also has the events that were fetched from the producer's outbox.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- others must not wait for this for long; after a timeout the next `migrate` does it
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open', 'fetch')) NOT VALID;

-- +goose Down
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open')) NOT VALID;
