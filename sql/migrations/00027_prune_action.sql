-- The audit trail has prunings of the inbox by a command, too.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- nobody may wait behind this for long: the next `migrate` does it then
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open', 'fetch', 'unskip', 'prune')) NOT VALID;

-- +goose Down
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open', 'fetch', 'unskip')) NOT VALID;
