-- What Debezium needs in the bank's database (PostgreSQL, wal_level=logical).
-- Run it once, as superuser or as an owner who may create roles.

CREATE TABLE outbox (
    id             uuid        PRIMARY KEY DEFAULT gen_random_uuid(), -- the event id
    aggregatetype  text        NOT NULL,                              -- account: the topic is account-events
    aggregateid    text        NOT NULL,                              -- the account id, which is the Kafka key
    type           text        NOT NULL,                              -- FundsCredited, ...
    version        bigint      NOT NULL,                              -- 1, 2, 3, ... of the account
    occurred_at    timestamptz NOT NULL,
    correlation_id text,
    payload        jsonb       NOT NULL,                              -- {"amount": "10.25", "currency": "EUR"}
    UNIQUE (aggregateid, version)                                     -- a bank that forgets to lock finds out here
);

-- Inserts only: rows may be deleted at any time, without an event.
CREATE PUBLICATION account_outbox FOR TABLE outbox WITH (publish = 'insert');

-- Set its password yourself: ALTER ROLE debezium PASSWORD '...'
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'debezium') THEN
        CREATE ROLE debezium LOGIN REPLICATION;
    END IF;
END $$;
GRANT SELECT ON outbox TO debezium;
