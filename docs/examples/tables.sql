-- These are the tables of the examples in this folder. Create them by your own migrations, and
-- grant them to the role that the SQL of a projection file runs as. `projector projection check
-- FILE` names the missing grants.

CREATE TABLE loyalty (
    account_id text   PRIMARY KEY,
    points     bigint NOT NULL,
    version    bigint NOT NULL
);

CREATE TABLE event_count (
    account_id text        PRIMARY KEY,
    events     bigint      NOT NULL,
    last_at    timestamptz NOT NULL
);

CREATE TABLE latest_address (
    account_id text        PRIMARY KEY,
    street     text        NOT NULL,
    city       text        NOT NULL,
    country    char(2)     NOT NULL,
    since      timestamptz NOT NULL
);

CREATE TABLE fraud_hour (
    hour       timestamptz NOT NULL,
    event_type text        NOT NULL,
    events     bigint      NOT NULL,
    amount     numeric     NOT NULL,
    PRIMARY KEY (hour, event_type)
);

DO $grants$
BEGIN
    IF to_regrole('projector_projection') IS NOT NULL THEN
        GRANT SELECT, INSERT, UPDATE ON loyalty, event_count, latest_address, fraud_hour TO projector_projection;
        GRANT DELETE ON latest_address TO projector_projection;
    END IF;
END
$grants$;
