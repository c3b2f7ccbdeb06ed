-- Each position has the contents of the mapping and the first version that the rows were made with.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- others must not wait for this for long; after a timeout the next `migrate` does it
ALTER TABLE projector_position ADD COLUMN mapping text;
COMMENT ON COLUMN projector_position.mapping IS 'What the mapping file and the first version say that records are read by, as JSON without comments and order; null in rows from before there was this column. run refuses a mapping or a first version that reads stored events differently.';

-- +goose Down
ALTER TABLE projector_position DROP COLUMN mapping;
