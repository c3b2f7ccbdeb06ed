-- This creates the tables for the balances, for the positions of the consumers, and for the events
-- that wait because of a gap.

-- +goose Up
CREATE TABLE account_balance (
    account_id    text PRIMARY KEY,
    currency      char(3),
    balance       numeric     NOT NULL,
    version       bigint      NOT NULL,
    status        text        NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed')),
    last_event_id text,
    last_event_at timestamptz,
    updated_at    timestamptz NOT NULL DEFAULT now()
)
-- Rows are updated often, and no index covers the columns that change. Free space on each page and
-- a frequent vacuum let PostgreSQL use HOT updates.
WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

COMMENT ON TABLE account_balance IS 'Balance of each account, projected from its events. Written by the projector only.';
COMMENT ON COLUMN account_balance.balance IS 'Credits - debits, with the number of decimals of the currency; 0 while the currency is null.';
COMMENT ON COLUMN account_balance.version IS 'Version of the last event applied. Never decreases.';
COMMENT ON COLUMN account_balance.last_event_at IS 'Time of the last event, by the event.';
COMMENT ON COLUMN account_balance.updated_at IS 'Time of the last write.';

-- +goose StatementBegin
CREATE FUNCTION projector_refuse_lower_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the version of an account never decreases'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'version_never_decreases',
              TABLE = TG_TABLE_NAME;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER version_never_decreases
    BEFORE UPDATE ON account_balance
    FOR EACH ROW WHEN (NEW.version < OLD.version)
    EXECUTE FUNCTION projector_refuse_lower_version();

CREATE TABLE projector_position (
    consumer_group text        NOT NULL,
    topic          text        NOT NULL,
    partition      int         NOT NULL,
    next_offset    bigint      NOT NULL,
    judged_until   bigint      NOT NULL,
    topic_id       text        NOT NULL,
    owner          text        NOT NULL,
    fence          bigint      NOT NULL,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_group, topic, partition)
)
WITH (fillfactor = 50);

COMMENT ON TABLE projector_position IS 'How far each partition is durable in this database.';
COMMENT ON COLUMN projector_position.next_offset IS 'The next record to consume: all before it are durable. Equals the committed offset in Kafka when the consumer is at rest.';
COMMENT ON COLUMN projector_position.judged_until IS 'The highest next_offset there ever was: records below it have been judged once already.';
COMMENT ON COLUMN projector_position.topic_id IS 'Kafka''s id of the topic the offsets belong to: a recreated topic has another.';
COMMENT ON COLUMN projector_position.fence IS 'Raised by each new owner and by each repair: a writer that knows another value is stale.';

CREATE TABLE parked_event (
    account_id       text        NOT NULL,
    version          bigint      NOT NULL,
    class            text        NOT NULL,
    event_id         text        NOT NULL,
    expected_version bigint      NOT NULL,
    topic            text        NOT NULL,
    partition        int         NOT NULL,
    "offset"         bigint      NOT NULL,
    record_timestamp bigint      NOT NULL,
    replays          int         NOT NULL DEFAULT 0,
    key              bytea,
    value            bytea,
    headers          bytea[]     NOT NULL,
    parked_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, version)
);
CREATE INDEX parked_event_partition ON parked_event (topic, partition);

COMMENT ON TABLE parked_event IS 'Dead-lettered events of known account and version that wait for a hole to be filled, or are the hole.';
COMMENT ON COLUMN parked_event.class IS 'version_gap: waits for its predecessor. Any other: cannot be applied, and is itself the hole.';
COMMENT ON COLUMN parked_event.expected_version IS 'The account''s version + 1 when the event was parked.';
COMMENT ON COLUMN parked_event.record_timestamp IS 'Kafka''s timestamp of the record, milliseconds since the epoch.';
COMMENT ON COLUMN parked_event.headers IS 'Header keys and values in turn, as bytes.';

-- Gap events beyond the park limit are stored only in the DLQ. This table stores how many such
-- events an account has, and their versions.
CREATE TABLE park_overflow (
    account_id       text PRIMARY KEY,
    lowest_version   bigint      NOT NULL,
    highest_version  bigint      NOT NULL,
    events           bigint      NOT NULL,
    expected_version bigint      NOT NULL,
    since            timestamptz NOT NULL DEFAULT now()
);

-- An account waits while known events above its version are not in its balance. This view derives
-- the waiting accounts from the parked events.
CREATE VIEW account_hold AS
SELECT w.account_id,
       coalesce(b.version + 1, w.expected_version)       AS expected_version,
       w.received_version,
       coalesce(h.class, 'version_gap')                  AS class,
       w.waiting_events,
       w.since,
       w.overflowed_events
FROM (
    SELECT account_id,
           min(expected_version)  AS expected_version,
           min(version)           AS received_version,
           sum(parked)::bigint    AS waiting_events,
           min(since)             AS since,
           sum(overflowed)::bigint AS overflowed_events
    FROM (
        SELECT p.account_id, p.expected_version, p.version, 1 AS parked, p.parked_at AS since, 0 AS overflowed
        FROM parked_event p
        LEFT JOIN account_balance b ON b.account_id = p.account_id
        WHERE p.version > coalesce(b.version, p.version - 1)
        UNION ALL
        SELECT o.account_id, o.expected_version, o.lowest_version, o.events, o.since, o.events
        FROM park_overflow o
        LEFT JOIN account_balance b ON b.account_id = o.account_id
        WHERE o.highest_version > coalesce(b.version, o.highest_version - 1)
    ) AS known
    GROUP BY account_id
) AS w
LEFT JOIN account_balance b ON b.account_id = w.account_id
LEFT JOIN parked_event h ON h.account_id = w.account_id
                        AND h.version = coalesce(b.version + 1, w.expected_version);

COMMENT ON VIEW account_hold IS 'Accounts that wait for a missing or corrected event, and how much waits behind it.';

CREATE VIEW account_balance_current AS
SELECT coalesce(b.account_id, h.account_id) AS account_id,
       b.currency, b.balance, b.version, b.status, b.last_event_id, b.last_event_at, b.updated_at,
       h.account_id IS NOT NULL             AS stale,
       h.expected_version                   AS waiting_for_version
FROM account_balance b
FULL JOIN account_hold h ON h.account_id = b.account_id;

COMMENT ON VIEW account_balance_current IS 'account_balance, and whether a known event is missing from it (stale) and which version it waits for.';
