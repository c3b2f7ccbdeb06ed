-- Each position gets a column with the mapping and the value of --first-version with which its
-- records are read.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
ALTER TABLE projector_position ADD COLUMN mapping text;
COMMENT ON COLUMN projector_position.mapping IS 'What the mapping file and the first version say that records are read by, as JSON without comments and order; null in rows from before there was this column. run refuses a mapping or a first version that reads stored events differently.';
