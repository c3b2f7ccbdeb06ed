-- This adds custom projections, which are SQL files that read the events. It creates the accounts
-- of ordered custom projections, the file of each projection, and the view with the events for the
-- SQL in the file. All tables are new, so no session has to wait for a lock.

-- +goose Up
CREATE TABLE projection_account (
    projection    text        NOT NULL,
    account_id    text        NOT NULL,
    version       bigint      NOT NULL,
    last_event_id text,
    last_event_at timestamptz,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, account_id)
)
-- As for account_balance, free space on each page and a frequent vacuum let PostgreSQL use HOT
-- updates.
WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

COMMENT ON TABLE projection_account IS 'How far each account is in each ordered projection of one''s own. Written by the projector only.';
COMMENT ON COLUMN projection_account.version IS 'Version of the last event the projection was given. Never decreases.';

CREATE TRIGGER version_never_decreases
    BEFORE UPDATE ON projection_account
    FOR EACH ROW WHEN (NEW.version < OLD.version)
    EXECUTE FUNCTION projector_refuse_lower_version();

CREATE TABLE projection_parked_event (
    projection       text        NOT NULL,
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
    PRIMARY KEY (projection, account_id, version)
);
CREATE INDEX projection_parked_event_partition ON projection_parked_event (projection, topic, partition);

COMMENT ON TABLE projection_parked_event IS 'parked_event of the ordered projections of one''s own.';

CREATE TABLE projection_park_overflow (
    projection       text        NOT NULL,
    account_id       text        NOT NULL,
    lowest_version   bigint      NOT NULL,
    highest_version  bigint      NOT NULL,
    events           bigint      NOT NULL,
    expected_version bigint      NOT NULL,
    since            timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, account_id)
);

COMMENT ON TABLE projection_park_overflow IS 'park_overflow of the ordered projections of one''s own.';

CREATE VIEW projection_hold AS
SELECT w.projection,
       w.account_id,
       coalesce(b.version + 1, w.expected_version) AS expected_version,
       w.received_version,
       coalesce(h.class, 'version_gap')            AS class,
       w.waiting_events,
       w.since,
       w.overflowed_events
FROM (
    SELECT projection,
           account_id,
           min(expected_version)   AS expected_version,
           min(version)            AS received_version,
           sum(parked)::bigint     AS waiting_events,
           min(since)              AS since,
           sum(overflowed)::bigint AS overflowed_events
    FROM (
        SELECT p.projection, p.account_id, p.expected_version, p.version, 1 AS parked, p.parked_at AS since, 0 AS overflowed
        FROM projection_parked_event p
        LEFT JOIN projection_account b ON b.projection = p.projection AND b.account_id = p.account_id
        WHERE p.version > coalesce(b.version, p.version - 1)
        UNION ALL
        SELECT o.projection, o.account_id, o.expected_version, o.lowest_version, o.events, o.since, o.events
        FROM projection_park_overflow o
        LEFT JOIN projection_account b ON b.projection = o.projection AND b.account_id = o.account_id
        WHERE o.highest_version > coalesce(b.version, o.highest_version - 1)
    ) AS known
    GROUP BY projection, account_id
) AS w
LEFT JOIN projection_account b ON b.projection = w.projection AND b.account_id = w.account_id
LEFT JOIN projection_parked_event h ON h.projection = w.projection AND h.account_id = w.account_id
                                   AND h.version = coalesce(b.version + 1, w.expected_version);

COMMENT ON VIEW projection_hold IS 'account_hold of the ordered projections of one''s own.';

CREATE TABLE projection_file (
    projection text PRIMARY KEY,
    sha256     text        NOT NULL,
    mode       text        NOT NULL,
    text       text        NOT NULL,
    kept_at    timestamptz NOT NULL DEFAULT now(),
    kept_by    text        NOT NULL DEFAULT session_user
);

COMMENT ON TABLE projection_file IS 'The file each projection of one''s own was last run from: its rows came from these rules.';
COMMENT ON COLUMN projection_file.sha256 IS 'SHA-256 of the file.';
COMMENT ON COLUMN projection_file.text IS 'The whole file.';

-- This function returns the events of the current transaction. The events are the parameters of a
-- cursor that the projector declares in each transaction. A cursor needs no session state, so it
-- works through a pooler. Temporary tables would make the catalogs grow.
-- +goose StatementBegin
CREATE FUNCTION projector_new_events()
RETURNS TABLE (
    account_id text, version bigint, event_id text, event_type text, occurred_at timestamptz, correlation_id text,
    data jsonb, topic text, partition int, "offset" bigint
)
LANGUAGE plpgsql VOLATILE ROWS 1000 AS $$
BEGIN
    EXECUTE 'MOVE ABSOLUTE 0 IN projector_new_events'; -- another statement has read them
    RETURN QUERY EXECUTE 'FETCH ALL IN projector_new_events';
END
$$;
-- +goose StatementEnd

CREATE VIEW new_events AS SELECT * FROM projector_new_events();

COMMENT ON VIEW new_events IS 'What the SQL of a projection of one''s own is given: each event once. There is something in it only while the projector writes.';
