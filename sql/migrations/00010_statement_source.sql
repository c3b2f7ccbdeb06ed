-- The rows of a statement get the partition and offset of their events. Two new views have the
-- balances and the skipped versions, with which statements are compared.

-- +goose Up
-- Other sessions must not wait long for the locks of this migration. After a time-out, run
-- `migrate` again.
SET LOCAL lock_timeout = '5s';

-- The columns are nullable and have no default, so PostgreSQL does not rewrite the table. In
-- existing rows they are null.
ALTER TABLE account_statement
    ADD COLUMN source_partition int,
    ADD COLUMN source_offset    bigint;

COMMENT ON COLUMN account_statement.source_partition IS 'Where in its topic the event was first read; null in rows from before there was this column.';
COMMENT ON COLUMN account_statement.source_offset IS 'Its offset there.';

CREATE INDEX dlq_action_skipped ON dlq_action (account_id, version) WHERE action = 'skip';

CREATE VIEW account_skipped AS
SELECT DISTINCT account_id, version
FROM dlq_action
WHERE action = 'skip' AND result = 'skipped' AND account_id IS NOT NULL AND version IS NOT NULL;

COMMENT ON VIEW account_skipped IS 'Versions that were passed over on purpose (account skip): no balance has their events in it.';

CREATE VIEW account_statement_balance AS
SELECT account_id, version, balance, currency FROM account_balance;

COMMENT ON VIEW account_statement_balance IS 'What a statement has to add up to, for account statement. It does not say whether a balance is stale: readers have account_balance_current.';
