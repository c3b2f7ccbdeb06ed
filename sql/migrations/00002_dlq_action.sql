-- This creates the audit trail of the repair commands. The audit trail shows what people have done
-- with dead letters.

-- +goose Up
CREATE TABLE dlq_action (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action        text        NOT NULL CHECK (action IN ('replay', 'discard', 'skip')),
    account_id    text,
    version       bigint,
    topic         text,
    partition     int,
    "offset"      bigint,
    dlq_topic     text,
    dlq_partition int,
    dlq_offset    bigint,
    class         text,
    actor         text        NOT NULL,
    reason        text,
    result        text        NOT NULL,
    at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dlq_action_record ON dlq_action (dlq_topic, dlq_partition, dlq_offset);

COMMENT ON TABLE dlq_action IS 'Audit trail of dlq replay, dlq discard and account skip. Append-only: GRANT SELECT, INSERT to whoever repairs, and nothing else.';
COMMENT ON COLUMN dlq_action.version IS 'The version of the event that was replayed, discarded or passed over.';
COMMENT ON COLUMN dlq_action.topic IS 'The place of the original in its source topic, with partition and offset.';
COMMENT ON COLUMN dlq_action.actor IS 'Who did it: user@host, or what --actor said.';
COMMENT ON COLUMN dlq_action.reason IS 'Why, in the words of who did it; for a replay without effect, why it had none.';
COMMENT ON COLUMN dlq_action.result IS 'applied, duplicate, waiting, poison, refused, published, discarded or skipped.';

-- +goose StatementBegin
CREATE FUNCTION projector_refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON dlq_action
    FOR EACH STATEMENT EXECUTE FUNCTION projector_refuse_rewriting();

REVOKE UPDATE, DELETE, TRUNCATE ON dlq_action FROM PUBLIC;
