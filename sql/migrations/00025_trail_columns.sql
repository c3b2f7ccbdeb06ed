-- The audit trail gets columns for the consumer group, the projection, and the request of an
-- approved change. The time of a row becomes the time at which the row was written. Writers of the
-- trail wait for each other by locking a row that only the owner may lock. An advisory lock is not
-- safe for this, because any login may hold it. From now on, the SQL of a custom projection cannot
-- change its role.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
ALTER TABLE dlq_action
    ADD COLUMN consumer_group text,
    ADD COLUMN IF NOT EXISTS projection text,
    ADD COLUMN request_id     bigint,
    ADD COLUMN requested_by   text;

COMMENT ON COLUMN dlq_action.consumer_group IS 'The consumer group whose position was changed, or whose dead letter it was.';
COMMENT ON COLUMN dlq_action.projection IS 'The projection that was changed; null in rows from before there was this column. A result of such a row ends in " in NAME" for a custom projection.';
COMMENT ON COLUMN dlq_action.request_id IS 'The request in repair_request that was approved.';
COMMENT ON COLUMN dlq_action.requested_by IS 'The session_user of PostgreSQL that made this request.';
COMMENT ON COLUMN dlq_action.at IS 'When the row was written, by the clock of the server.';
COMMENT ON COLUMN dlq_action.result IS 'applied, duplicate, waiting, poison, refused, published, discarded, skipped, replaced or removed; of position set, from where to where it was set; of pause and resume, what the partition did before and does now.';

-- The table has one row. A writer of the chain locks this row until COMMIT.
CREATE TABLE dlq_action_lock (one boolean PRIMARY KEY DEFAULT true CHECK (one));
INSERT INTO dlq_action_lock DEFAULT VALUES;
COMMENT ON TABLE dlq_action_lock IS 'One row, by which writers of dlq_action wait for each other. Nobody but the owner may lock it: grant nothing on it.';

-- +goose StatementBegin
-- This is the text that is hashed. It contains the new columns only if one of them is set. So the
-- hashes of older rows stay valid.
CREATE OR REPLACE FUNCTION dlq_action_text(a dlq_action) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(coalesce(octet_length(convert_to(f, 'UTF8')) || ':' || f, '-'), ',' ORDER BY n)
    FROM unnest(ARRAY[
        a.id::text, a.action, a.account_id, a.version::text, a.topic, a.partition::text, a."offset"::text,
        a.dlq_topic, a.dlq_partition::text, a.dlq_offset::text, a.class, a.actor, a.db_user, a.reason, a.result,
        a.altered::text, a.value_sha256, a.original_sha256, a.approved_by, a.approval_reason,
        to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')]
        || CASE WHEN num_nonnulls(a.consumer_group, a.projection, a.request_id, a.requested_by) > 0
                THEN ARRAY[a.consumer_group, a.projection, a.request_id::text, a.requested_by] ELSE '{}'::text[] END
        || CASE WHEN a.previous_event_id IS NOT NULL THEN ARRAY[a.previous_event_id] ELSE '{}'::text[] END
    ) WITH ORDINALITY AS t (f, n)
$$;

-- This replaces the function of migration 00017. The new function also sets the time of the write,
-- the request, and the login that has made the request. It lets the role of running instances add
-- only rows for events that this role has fetched.
CREATE OR REPLACE FUNCTION dlq_action_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    request text := current_setting('projector.request', true);
    role    name;
    allowed boolean;
BEGIN
    IF NEW.action <> 'fetch' AND to_regrole('projector_runtime') IS NOT NULL AND pg_has_role('projector_runtime', 'USAGE') THEN
        SELECT pg_has_role(relowner, 'USAGE') INTO allowed FROM pg_class WHERE oid = TG_RELID;
        FOREACH role IN ARRAY ARRAY['projector_operator', 'projector_approver'] LOOP
            IF to_regrole(role) IS NOT NULL THEN
                allowed := allowed OR pg_has_role(role, 'USAGE') AND has_any_column_privilege(role, TG_RELID, 'INSERT');
            END IF;
        END LOOP;
        IF NOT allowed THEN
            RAISE EXCEPTION 'the role projector_runtime may add rows with the action fetch to the trail, not %', NEW.action
                USING ERRCODE = 'insufficient_privilege';
        END IF;
    END IF;
    NEW.at := clock_timestamp();
    NEW.db_user := session_user;
    NEW.chain := NULL;
    NEW.hash := NULL;
    NEW.approved_by := NULL;
    NEW.approval_reason := NULL;
    NEW.request_id := NULL;
    NEW.requested_by := NULL;
    IF request <> '' THEN
        SELECT r.id, r.requested_by, r.decided_by, r.decision_reason
        INTO NEW.request_id, NEW.requested_by, NEW.approved_by, NEW.approval_reason
        FROM repair_request r
        WHERE r.id = request::bigint AND r.state = 'approved' AND r.decided_by = session_user;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'request % was not approved by %', request, session_user USING ERRCODE = 'insufficient_privilege';
        END IF;
    END IF;
    RETURN NEW;
END
$$;

-- This trigger runs at COMMIT, so writers wait for each other only during their COMMIT.
CREATE OR REPLACE FUNCTION dlq_action_link() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    last record;
BEGIN
    PERFORM FROM dlq_action_lock FOR UPDATE;
    SELECT chain, hash INTO last FROM dlq_action WHERE chain IS NOT NULL ORDER BY chain DESC LIMIT 1;
    UPDATE dlq_action a SET chain = coalesce(last.chain, 0) + 1, hash = dlq_action_hash(last.hash, a)
    WHERE a.id = NEW.id;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION repair_request_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.at := clock_timestamp();
    NEW.requested_by := session_user;
    NEW.state := 'open';
    NEW.decided_by := NULL;
    NEW.decided_at := NULL;
    NEW.decision_reason := NULL;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION repair_request_decide() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'open' THEN
        RAISE EXCEPTION 'request % is %', OLD.id, OLD.state USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.state = 'approved' AND OLD.requested_by = session_user THEN
        RAISE EXCEPTION 'four eyes: % has made request %, so another login has to approve it', session_user, OLD.id
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    NEW.decided_by := session_user;
    NEW.decided_at := clock_timestamp();
    OLD.state := NEW.state;
    OLD.decided_by := NEW.decided_by;
    OLD.decided_at := NEW.decided_at;
    OLD.decision_reason := NEW.decision_reason;
    IF NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'request % cannot be changed', OLD.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;

-- Runs one statement of a projection file as the role projector_projection, which may use only what
-- is granted to it. No part of the statement may run later as the login of the session. The
-- argument step is "run", "last" (for the last statement of the file) or "plan" (for an EXPLAIN,
-- whose result is returned).
--
-- The function projector_contained of roles.sql belongs to that role and runs as its owner. While
-- projector_contained runs, PostgreSQL refuses every change of role, also in functions that the
-- statement calls. If the login may not execute projector_contained but is a member of the role,
-- SET ROLE is used. Otherwise the statement runs as the login.
--
-- The statement may have created objects with the names of system objects. So after the statement,
-- names are qualified with pg_catalog, or used only when the search path has been reset.
CREATE FUNCTION projector_custom(statement text, step text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    function  regprocedure := to_regprocedure('projector_contained(text, boolean, text)');
    path      text := current_setting('projector.custom_path', true);
    request   text := current_setting('projector.request', true);
    contained boolean := false;
    member    boolean := false;
    outlives  boolean := false;
    command   text := statement;
    answer    text;
    queued    numeric;
    before    numeric;
BEGIN
    IF current_schema() IS DISTINCT FROM 'projector_rebuild' AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) THEN
        contained := function IS NOT NULL AND has_function_privilege(function, 'EXECUTE');
        member := NOT contained AND EXISTS (SELECT FROM pg_roles WHERE rolname = 'projector_projection' AND pg_has_role(session_user, oid, 'MEMBER'));
    END IF;
    BEGIN
        -- The second time, triggers that were deferred; the third time, those that these deferred.
        FOR round IN 1..CASE step WHEN 'last' THEN 3 ELSE 1 END LOOP
            IF contained THEN
                answer := projector_contained(command, step = 'plan', path);
            ELSE
                IF member THEN
                    PERFORM set_config('role', 'projector_projection', true);
                END IF;
                IF path <> '' THEN
                    PERFORM set_config('search_path', path, true);
                END IF;
                IF step = 'plan' THEN
                    EXECUTE command INTO answer;
                ELSE
                    EXECUTE command;
                END IF;
                RESET ROLE;
            END IF;
            path := pg_catalog.current_setting('search_path');
            RESET search_path;
            IF step = 'last' THEN
                command := 'SET CONSTRAINTS ALL IMMEDIATE';
                before := queued;
                SELECT pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_inserted(t.id)) + pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_updated(t.id))
                     + pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_deleted(t.id)) INTO queued
                FROM (SELECT DISTINCT tgrelid AS id FROM pg_catalog.pg_trigger WHERE tgdeferrable) AS t;
            END IF;
        END LOOP;
    EXCEPTION WHEN OTHERS OR QUERY_CANCELED OR ASSERT_FAILURE THEN
        FOR answer IN SELECT name FROM pg_catalog.pg_prepared_statements WHERE from_sql AND prepare_time >= pg_catalog.statement_timestamp() LOOP
            EXECUTE pg_catalog.format('DEALLOCATE %I', answer);
        END LOOP;
        RAISE;
    END;
    IF queued <> before THEN
        RAISE EXCEPTION 'a trigger that was deferred defers another' USING ERRCODE = 'insufficient_privilege';
    END IF;
    FOR command IN SELECT name FROM pg_catalog.pg_prepared_statements WHERE from_sql AND prepare_time >= pg_catalog.statement_timestamp() LOOP
        EXECUTE pg_catalog.format('DEALLOCATE %I', command);
        outlives := true; -- no ROLLBACK ends it
    END LOOP;
    IF outlives OR EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema())
        OR EXISTS (SELECT FROM pg_catalog.pg_type WHERE typnamespace = pg_catalog.pg_my_temp_schema()) THEN
        RAISE EXCEPTION 'the SQL has made a prepared statement or a temporary object, which outlives it' USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM set_config('projector.request', '', false), set_config('projector.request', coalesce(request, ''), true),
            set_config('projector.custom_path', CASE step WHEN 'run' THEN path ELSE '' END, true);
    IF step = 'last' THEN
        EXECUTE 'CLOSE ALL'; -- a held cursor would be read at COMMIT
    END IF;
    RETURN answer;
END
$$;

-- These functions must find objects in the schema of the read model only. Default privileges of the
-- owner must not let another role lock the row of dlq_action_lock.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['dlq_action_text(dlq_action)', 'dlq_action_stamp()', 'dlq_action_link()', 'repair_request_stamp()', 'repair_request_decide()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
    FOR name IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = 'dlq_action_lock'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON dlq_action_lock FROM %s', name);
    END LOOP;
END
$$;
-- +goose StatementEnd
