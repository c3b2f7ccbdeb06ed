-- What the mapping says that the rows of a projection were made with: each position has it.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- nobody may wait behind this for long: the next `migrate` does it then
ALTER TABLE projector_position ADD COLUMN mapping text;
COMMENT ON COLUMN projector_position.mapping IS 'What the mapping file says that records are read by, as JSON without comments and order; {} without a file, null in rows from before there was this column. run refuses a mapping that reads stored events differently.';

-- +goose Down
ALTER TABLE projector_position DROP COLUMN mapping;
