-- The audit trail gets an action for rebuilds. A rebuild adds a row for each account that it
-- replaces.

-- +goose Up
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild')) NOT VALID;

COMMENT ON TABLE dlq_action IS 'Audit trail of dlq replay, dlq discard, account skip and rebuild. Append-only: GRANT SELECT, INSERT to whoever repairs, and nothing else.';
COMMENT ON COLUMN dlq_action.version IS 'The version of the event that was replayed, discarded or passed over; of a rebuilt account the version it has since.';
COMMENT ON COLUMN dlq_action.reason IS 'Why, in the words of who did it; for a replay without effect, why it had none; for a rebuild, in what way the account was wrong.';
COMMENT ON COLUMN dlq_action.result IS 'applied, duplicate, waiting, poison, refused, published, discarded, skipped, replaced or removed.';
