-- A position gets a column with the leader epoch of the last consumed record. Another column has
-- the reason why a partition is stopped. A partition is stopped if its log has lost records that
-- were already consumed, until a person sets the position.

-- +goose Up
ALTER TABLE projector_position
    ADD COLUMN leader_epoch    int    NOT NULL DEFAULT -1,
    ADD COLUMN leader_epoch_at bigint NOT NULL DEFAULT -1,
    ADD COLUMN judged_epoch    int    NOT NULL DEFAULT -1,
    ADD COLUMN judged_epoch_at bigint NOT NULL DEFAULT -1,
    ADD COLUMN stopped_reason  text;

COMMENT ON COLUMN projector_position.leader_epoch IS 'Kafka''s leader epoch of the record before next_offset, or of a later one where the position was taken back; -1: not known.';
COMMENT ON COLUMN projector_position.leader_epoch_at IS 'The next_offset to which leader_epoch belongs. Where they differ, somebody who does not know of epochs has moved the position, a person or an older version, and the epoch is not known.';
COMMENT ON COLUMN projector_position.judged_until IS 'How far records have been processed at any time: one below it, of no higher leader epoch than judged_epoch, has been processed before.';
COMMENT ON COLUMN projector_position.judged_epoch IS 'Kafka''s leader epoch of the record before judged_until; -1: not known.';
COMMENT ON COLUMN projector_position.judged_epoch_at IS 'The judged_until to which judged_epoch belongs; see leader_epoch_at.';
COMMENT ON COLUMN projector_position.stopped_reason IS 'Why the partition is stopped until a person sets its position; null: it is not.';
