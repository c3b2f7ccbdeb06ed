-- Each row of the audit trail gets a column for the login, and a column that says whether the
-- message was altered. Each row also gets a hash over its values and the hash of the row before it.
-- With these hashes, a changed or removed row can be detected.

-- +goose Up
ALTER TABLE dlq_action
    ADD COLUMN db_user         text,
    ADD COLUMN altered         boolean NOT NULL DEFAULT false,
    ADD COLUMN value_sha256    text,
    ADD COLUMN original_sha256 text,
    ADD COLUMN approved_by     text,
    ADD COLUMN approval_reason text,
    ADD COLUMN chain           bigint,
    ADD COLUMN hash            text;

COMMENT ON COLUMN dlq_action.db_user IS 'The session_user of PostgreSQL, whoever the actor says to be; null in rows from before there was this column.';
COMMENT ON COLUMN dlq_action.altered IS 'Key, value or headers that were replayed are not the dead letter''s.';
COMMENT ON COLUMN dlq_action.value_sha256 IS 'SHA-256 of the value that was replayed.';
COMMENT ON COLUMN dlq_action.original_sha256 IS 'SHA-256 of the dead letter''s value.';
COMMENT ON COLUMN dlq_action.chain IS 'The row''s place in the chain, from 1 without a gap, in the order of the commits.';
COMMENT ON COLUMN dlq_action.hash IS 'SHA-256 over the hash before it and this row, by dlq_action_text.';

DROP TRIGGER append_only ON dlq_action;

-- +goose StatementBegin
CREATE FUNCTION dlq_action_text(a dlq_action) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(coalesce(octet_length(convert_to(f, 'UTF8')) || ':' || f, '-'), ',' ORDER BY n)
    FROM unnest(ARRAY[
        a.id::text, a.action, a.account_id, a.version::text, a.topic, a.partition::text, a."offset"::text,
        a.dlq_topic, a.dlq_partition::text, a.dlq_offset::text, a.class, a.actor, a.db_user, a.reason, a.result,
        a.altered::text, a.value_sha256, a.original_sha256, a.approved_by, a.approval_reason,
        to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')]) WITH ORDINALITY AS t (f, n)
$$;

CREATE FUNCTION dlq_action_hash(before text, a dlq_action) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT encode(sha256(convert_to(coalesce(before, '') || E'\n' || dlq_action_text(a), 'UTF8')), 'hex')
$$;

-- The rows that exist before this migration become the beginning of the chain.
DO $$
DECLARE
    row    dlq_action;
    place  bigint := 0;
    before text;
BEGIN
    FOR row IN SELECT * FROM dlq_action ORDER BY id LOOP
        place  := place + 1;
        before := dlq_action_hash(before, row);
        UPDATE dlq_action SET chain = place, hash = before WHERE id = row.id;
    END LOOP;
END
$$;

CREATE FUNCTION dlq_action_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.db_user := session_user;
    NEW.chain := NULL;
    NEW.hash := NULL;
    RETURN NEW;
END
$$;

-- This trigger runs at COMMIT, so writers wait for each other only during their COMMIT.
CREATE FUNCTION dlq_action_link() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('projector audit chain'));
    SELECT chain, hash INTO last FROM dlq_action WHERE chain IS NOT NULL ORDER BY chain DESC LIMIT 1;
    UPDATE dlq_action a SET chain = coalesce(last.chain, 0) + 1, hash = dlq_action_hash(last.hash, a)
    WHERE a.id = NEW.id;
    RETURN NULL;
END
$$;

CREATE FUNCTION dlq_action_unchanged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.chain IS NOT NULL OR dlq_action_text(OLD) IS DISTINCT FROM dlq_action_text(NEW) THEN
        RAISE EXCEPTION 'dlq_action is append-only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;

-- These functions run as the owner of the table, for every login that inserts a row. So they must
-- find the table in this schema only.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['dlq_action_text(dlq_action)', 'dlq_action_hash(text, dlq_action)', 'dlq_action_link()', 'dlq_action_unchanged()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END
$$;
-- +goose StatementEnd

CREATE UNIQUE INDEX dlq_action_chain ON dlq_action (chain);

CREATE TRIGGER append_only
    BEFORE DELETE OR TRUNCATE ON dlq_action
    FOR EACH STATEMENT EXECUTE FUNCTION projector_refuse_rewriting();
CREATE TRIGGER append_only_rows
    BEFORE UPDATE ON dlq_action
    FOR EACH ROW EXECUTE FUNCTION dlq_action_unchanged();
CREATE TRIGGER stamp
    BEFORE INSERT ON dlq_action
    FOR EACH ROW EXECUTE FUNCTION dlq_action_stamp();
CREATE CONSTRAINT TRIGGER link
    AFTER INSERT ON dlq_action
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION dlq_action_link();
