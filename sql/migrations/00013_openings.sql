-- This adds openings. An opening is the balance and the version from which an account starts if its
-- first events are not in the topic. Each opening also has the name of the person who has set it.

-- +goose Up
-- Other sessions must not wait long for the locks of this migration. After a time-out, run
-- `migrate` again.
SET LOCAL lock_timeout = '5s';

CREATE TABLE account_opening (
    account_id    text PRIMARY KEY,
    version       bigint      NOT NULL,
    balance       numeric     NOT NULL,
    currency      char(3),
    status        text        NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed')),
    last_event_id text,
    source        text        NOT NULL,
    actor         text        NOT NULL,
    reason        text        NOT NULL,
    opened_at     timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE account_opening IS 'What accounts start from that do not start with their first event: projector open. A balance is its opening and the events behind it.';
COMMENT ON COLUMN account_opening.version IS 'Events up to and including it are duplicates.';
COMMENT ON COLUMN account_opening.last_event_id IS 'Id of the event of that version; null: the ledger did not say.';
COMMENT ON COLUMN account_opening.source IS 'The ledger it was taken from: a file, or a server.';

ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes', 'open')) NOT VALID;

COMMENT ON COLUMN dlq_action.value_sha256 IS 'SHA-256 of the value that was replayed; of open, of the openings of the row, as the lines of a ledger.';
COMMENT ON COLUMN dlq_action.original_sha256 IS 'SHA-256 of the dead letter''s value; of open, of the ledger''s file.';

CREATE OR REPLACE VIEW account_statement_missing AS
SELECT account_id, previous + 1 AS from_version, version - 1 AS to_version
FROM (
    SELECT s.account_id, s.version,
           lag(s.version, 1, coalesce(o.version, 0)) OVER (PARTITION BY s.account_id ORDER BY s.version) AS previous
    FROM account_statement s
    LEFT JOIN account_opening o ON o.account_id = s.account_id
    WHERE o.version IS NULL OR s.version > o.version
) AS neighbours
WHERE version > previous + 1;

COMMENT ON VIEW account_statement_missing IS 'Runs of versions below an account''s highest that have no row, behind its opening if it has one. Versions are taken to start at 1.';

CREATE OR REPLACE VIEW account_statement_balance AS
SELECT b.account_id, b.version, b.balance, b.currency,
       o.version AS opening_version, o.balance AS opening_balance, o.currency AS opening_currency
FROM account_balance b
LEFT JOIN account_opening o ON o.account_id = b.account_id;

COMMENT ON VIEW account_statement_balance IS 'What a statement begins with and what it has to add up to, for account statement. It does not say whether a balance is stale: readers have account_balance_current.';
