-- The breaker stops a partition when too many of its last records are dead letters. People can
-- pause and resume a partition.

-- +goose Up
ALTER TABLE projector_position
    ADD COLUMN breaker_window  bytea,
    ADD COLUMN breaker_through bigint,
    ADD COLUMN breaker_reason  text,
    ADD COLUMN paused_reason   text;

COMMENT ON COLUMN projector_position.breaker_window IS 'Which of the last records before next_offset were root dead letters, as projection.Breaker counts them; null or empty: none is counted yet.';
COMMENT ON COLUMN projector_position.breaker_through IS 'Records below this offset do not count for the breaker.';
COMMENT ON COLUMN projector_position.breaker_reason IS 'Why the partition''s breaker is open, which stops it for every owner until a person resumes it; null: it is not.';
COMMENT ON COLUMN projector_position.paused_reason IS 'Who has paused the partition and why, which stops it for every owner until a person resumes it; null: nobody has.';

ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume')) NOT VALID;

COMMENT ON TABLE dlq_action IS 'Audit trail of dlq replay, dlq discard, account skip, rebuild, position set, pause and resume. Append-only: GRANT SELECT, INSERT to whoever repairs, and nothing else.';
COMMENT ON COLUMN dlq_action.topic IS 'The place of the original in its source topic, with partition and offset; of position set, pause and resume, where the partition goes on.';
COMMENT ON COLUMN dlq_action.result IS 'applied, duplicate, waiting, poison, refused, published, discarded, skipped, replaced or removed; of position set, from where it was set; of pause and resume, what the partition did before and does now.';
