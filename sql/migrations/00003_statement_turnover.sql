-- This adds two more projections: the statements and the daily turnover. The turnover is a sum, so
-- it needs the inbox, which stores the ids of processed messages. Each position gets a column with
-- the projection of its consumer group.

-- +goose Up
-- Every consumer group from before this migration projects balances.
ALTER TABLE projector_position ADD COLUMN projection text NOT NULL DEFAULT 'account_balance';

COMMENT ON COLUMN projector_position.projection IS 'The projection the group runs: another one must not go on where it has stopped.';

CREATE TABLE account_statement (
    account_id     text        NOT NULL,
    version        bigint      NOT NULL,
    event_id       text        NOT NULL,
    event_type     text        NOT NULL,
    amount         numeric,
    currency       char(3),
    occurred_at    timestamptz NOT NULL,
    correlation_id text,
    -- The index includes the amount and the time. So the balance at a version or a time is read
    -- from the few pages with the rows of the account.
    PRIMARY KEY (account_id, version) INCLUDE (amount, occurred_at)
);

COMMENT ON TABLE account_statement IS 'One row an event of each account. Written by the projector only; a row never changes.';
COMMENT ON COLUMN account_statement.amount IS 'Credits positive, debits negative, with the number of decimals of the currency; null where the event moves no money.';
COMMENT ON COLUMN account_statement.occurred_at IS 'Time of the event, by the event.';

CREATE VIEW account_statement_missing AS
SELECT account_id, previous + 1 AS from_version, version - 1 AS to_version
FROM (
    SELECT account_id, version, lag(version, 1, 0::bigint) OVER (PARTITION BY account_id ORDER BY version) AS previous
    FROM account_statement
) AS neighbours
WHERE version > previous + 1;

COMMENT ON VIEW account_statement_missing IS 'Runs of versions below an account''s highest that have no row. Versions are taken to start at 1.';

CREATE TABLE daily_turnover (
    day      date    NOT NULL,
    currency char(3) NOT NULL,
    credited numeric NOT NULL,
    debited  numeric NOT NULL,
    events   bigint  NOT NULL,
    PRIMARY KEY (day, currency)
)
-- The table has few rows, which are updated often. Free space on each page lets PostgreSQL use HOT
-- updates.
WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

COMMENT ON TABLE daily_turnover IS 'Money moved a day and currency. Written by the projector only.';
COMMENT ON COLUMN daily_turnover.day IS 'UTC day of the time of the event, by the event.';
COMMENT ON COLUMN daily_turnover.events IS 'Credits and debits counted.';

CREATE TABLE inbox (
    message_id   text        NOT NULL,
    handler      text        NOT NULL,
    processed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (message_id, handler)
)
WITH (autovacuum_vacuum_scale_factor = 0.1);
-- This index is for pruning. All rows of a transaction have the same time, so the index is small.
CREATE INDEX inbox_age ON inbox (handler, processed_at);

COMMENT ON TABLE inbox IS 'Messages a handler has taken in, marked in the transaction of their effect. Pruned by age.';
COMMENT ON COLUMN inbox.message_id IS 'The event''s id.';
COMMENT ON COLUMN inbox.handler IS 'The name of the projection.';

CREATE TABLE inbox_pruned (
    handler text        PRIMARY KEY,
    until   timestamptz NOT NULL
);

COMMENT ON TABLE inbox_pruned IS 'Markers of a handler from before this time may be gone: that one is not there then proves nothing.';
