-- This stores the partition and the offsets of the events beyond the park limit, so that these
-- events can be read again.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
ALTER TABLE park_overflow ADD COLUMN topic text, ADD COLUMN partition int, ADD COLUMN first_offset bigint, ADD COLUMN last_offset bigint, ADD COLUMN first_version bigint;
ALTER TABLE projection_park_overflow ADD COLUMN topic text, ADD COLUMN partition int, ADD COLUMN first_offset bigint, ADD COLUMN last_offset bigint, ADD COLUMN first_version bigint;
COMMENT ON COLUMN park_overflow.partition IS 'The partition that has these events. Null: several partitions, or not known. Then only dlq replay applies them.';
COMMENT ON COLUMN park_overflow.first_offset IS 'The lowest offset of these events. They are read again from here when the account has the version before first_version. Null: only dlq replay applies them.';
COMMENT ON COLUMN park_overflow.last_offset IS 'The highest offset of these events.';
COMMENT ON COLUMN park_overflow.first_version IS 'The lowest version of these events.';
