-- A parked event gets the partition and offset of the last other event with the same version. The
-- other event was dead-lettered but not parked, so a rebuild could not know that consumers have
-- processed it. PostgreSQL does not rewrite the table.

-- +goose Up
SET LOCAL lock_timeout = '5s';
ALTER TABLE parked_event ADD COLUMN rival_partition int, ADD COLUMN rival_offset bigint;
COMMENT ON COLUMN parked_event.rival_offset IS 'Where the last other event of this version came that was not parked, because this one was.';
