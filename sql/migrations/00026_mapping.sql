-- Each position gets the contents of the mapping, and the first version, with which the rows were
-- created.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- others wait at most 5 s; if this fails, run `migrate` again
ALTER TABLE projector_position ADD COLUMN mapping text;
COMMENT ON COLUMN projector_position.mapping IS 'What the mapping file and the first version say that records are read by, as JSON without comments and order; null in rows from before there was this column. run refuses a mapping or a first version that reads stored events differently.';

-- +goose Down
ALTER TABLE projector_position DROP COLUMN mapping;
