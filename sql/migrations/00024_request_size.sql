-- This limits the size of one request, because operators can add requests but nobody removes them.
-- The program has the same limit.

-- +goose Up
-- NOT VALID means that existing requests are not checked.
ALTER TABLE repair_request
    ADD CONSTRAINT repair_request_files_size CHECK (pg_column_size(file_contents) <= (64 << 20) + (64 << 10)) NOT VALID,
    ADD CONSTRAINT repair_request_texts_size CHECK (
        pg_column_size(arguments)::bigint + pg_column_size(file_flags) + pg_column_size(file_names) + pg_column_size(action)
        + pg_column_size(plan_sha256) + pg_column_size(actor) + pg_column_size(coalesce(reason, '')) <= 4 << 20
    ) NOT VALID;
