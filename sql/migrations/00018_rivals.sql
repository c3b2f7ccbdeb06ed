-- Where another event of the version of a parked one came last: it was dead-lettered and is
-- parked nowhere, so a rebuild could not tell that consumers have passed it. Added without
-- writing a row.

-- +goose Up
SET LOCAL lock_timeout = '5s';
ALTER TABLE parked_event ADD COLUMN rival_partition int, ADD COLUMN rival_offset bigint;
COMMENT ON COLUMN parked_event.rival_offset IS 'Where the last other event of this version came that was not parked, because this one was.';

-- +goose Down
ALTER TABLE parked_event DROP COLUMN rival_partition, DROP COLUMN rival_offset;
