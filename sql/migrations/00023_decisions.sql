-- With this view, a running projector can read the decisions of people about single events. So a
-- discarded event has no effect when it is read again, and an event for a skipped version is
-- reported. There is a new action that reverses a skip.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
ALTER TABLE dlq_action
    ADD COLUMN IF NOT EXISTS projection text,
    ADD COLUMN previous_event_id text;
COMMENT ON COLUMN dlq_action.previous_event_id IS 'Of a skip, the last event that the account had before: it has it again when the skip is taken back.';
ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open', 'fetch', 'unskip')) NOT VALID;
CREATE INDEX dlq_action_decision ON dlq_action (chain) WHERE action IN ('discard', 'skip', 'unskip', 'replay');

CREATE VIEW projector_decision AS
SELECT chain, action, result, projection, account_id, version, topic, partition, "offset"
FROM dlq_action
WHERE action IN ('discard', 'skip', 'unskip', 'replay');
COMMENT ON VIEW projector_decision IS 'What people have decided about single events: what a running projector may read of the audit trail.';

CREATE OR REPLACE VIEW account_skipped AS
SELECT DISTINCT s.account_id, s.version
FROM dlq_action s
WHERE s.action = 'skip' AND s.result = 'skipped' AND s.account_id IS NOT NULL AND s.version IS NOT NULL
  AND NOT EXISTS (SELECT FROM dlq_action u
                  WHERE u.action = 'unskip' AND u.result = 'unskipped' AND u.id > s.id
                    AND u.account_id = s.account_id AND u.version = s.version);

-- +goose StatementBegin
DO $$
BEGIN
    IF to_regrole('projector_runtime') IS NOT NULL THEN
        GRANT SELECT ON projector_decision TO projector_runtime;
    END IF;
END
$$;
-- +goose StatementEnd
