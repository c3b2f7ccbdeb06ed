-- The audit trail gets an action for the command that prunes the inbox.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open', 'fetch', 'unskip', 'prune')) NOT VALID;
