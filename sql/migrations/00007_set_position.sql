-- People can set positions. For this, a position gets the reason why its partition has stopped, and
-- the audit trail gets a new action.

-- +goose Up
ALTER TABLE projector_position
    ADD COLUMN stopped_end   bigint,
    ADD COLUMN halted_reason text,
    ADD COLUMN halted_fence  bigint,
    ADD COLUMN set_by_hand   boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN projector_position.stopped_end IS 'With stopped_reason: up to where the log still was what had been consumed; null: not known.';
COMMENT ON COLUMN projector_position.halted_reason IS 'Why an owner does not go on, by its own word: true while halted_fence is the fence. It tries again by itself.';
COMMENT ON COLUMN projector_position.set_by_hand IS 'A person has set the position since Kafka''s offset was committed last: it does not count until it has been brought to here.';

ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set')) NOT VALID;

COMMENT ON TABLE dlq_action IS 'Audit trail of dlq replay, dlq discard, account skip, rebuild and position set. Append-only: GRANT SELECT, INSERT to whoever repairs, and nothing else.';
COMMENT ON COLUMN dlq_action.topic IS 'The place of the original in its source topic, with partition and offset; of position set, where the partition goes on.';
COMMENT ON COLUMN dlq_action.result IS 'applied, duplicate, waiting, poison, refused, published, discarded, skipped, replaced or removed; of position set, from where it was set.';
