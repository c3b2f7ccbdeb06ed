-- This adds the four-eyes policy. While the policy is on, a change is stored as a request, and
-- another login has to approve it. Triggers set the login that has made the request and the login
-- that has decided about it. A request cannot be changed, and only one decision about it is
-- possible.

-- +goose Up
CREATE TABLE repair_policy (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    four_eyes boolean NOT NULL DEFAULT false
);
INSERT INTO repair_policy DEFAULT VALUES;

COMMENT ON TABLE repair_policy IS 'One row. projector migrate --four-eyes=on|off, as the owner, sets it and what goes with it: the grants.';

CREATE TABLE repair_request (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              timestamptz NOT NULL,
    action          text NOT NULL,
    arguments       text[] NOT NULL,
    file_flags      text[] NOT NULL,
    file_names      text[] NOT NULL,
    file_contents   bytea[] NOT NULL,
    plan_sha256     text NOT NULL,
    records         bigint NOT NULL,
    actor           text NOT NULL,
    reason          text,
    requested_by    text NOT NULL,
    state           text NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'refused')),
    decided_by      text,
    decided_at      timestamptz,
    decision_reason text,
    CHECK (CASE WHEN state = 'open' THEN num_nonnulls(decided_by, decided_at, decision_reason) = 0
                ELSE num_nulls(decided_by, decided_at, decision_reason) = 0 AND decision_reason <> '' END)
);

COMMENT ON TABLE repair_request IS 'Changes that somebody has asked for while four eyes were on, and what was decided.';
COMMENT ON COLUMN repair_request.arguments IS 'The command without its servers and passwords.';
COMMENT ON COLUMN repair_request.file_contents IS 'The files that the flags file_flags name, as they were.';
COMMENT ON COLUMN repair_request.plan_sha256 IS 'SHA-256 of what the command would have done when it was asked for.';
COMMENT ON COLUMN repair_request.requested_by IS 'The session_user of PostgreSQL, whoever the actor says to be.';
COMMENT ON COLUMN repair_request.state IS 'open, approved, rejected, or refused: the plan had changed when somebody approved it.';

ALTER TABLE dlq_action
    DROP CONSTRAINT dlq_action_action_check,
    ADD CONSTRAINT dlq_action_action_check CHECK (action IN ('replay', 'discard', 'skip', 'rebuild', 'position_set', 'pause', 'resume', 'four_eyes')) NOT VALID;

-- +goose StatementBegin
CREATE FUNCTION repair_request_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.at := now();
    NEW.requested_by := session_user;
    NEW.state := 'open';
    NEW.decided_by := NULL;
    NEW.decided_at := NULL;
    NEW.decision_reason := NULL;
    RETURN NEW;
END
$$;

CREATE FUNCTION repair_request_decide() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'open' THEN
        RAISE EXCEPTION 'request % is %', OLD.id, OLD.state USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.state = 'approved' AND OLD.requested_by = session_user THEN
        RAISE EXCEPTION 'four eyes: % has made request %, so another login has to approve it', session_user, OLD.id
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    NEW.decided_by := session_user;
    NEW.decided_at := now();
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

-- The audit row of an approved change gets the login that approved it and the reason. The
-- transaction of the change sets the variable projector.request to the number of the request.
CREATE OR REPLACE FUNCTION dlq_action_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    request text := current_setting('projector.request', true);
BEGIN
    NEW.db_user := session_user;
    NEW.chain := NULL;
    NEW.hash := NULL;
    NEW.approved_by := NULL;
    NEW.approval_reason := NULL;
    IF request <> '' THEN
        SELECT r.decided_by, r.decision_reason INTO NEW.approved_by, NEW.approval_reason
        FROM repair_request r
        WHERE r.id = request::bigint AND r.state = 'approved' AND r.decided_by = session_user;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'request % was not approved by %', request, session_user USING ERRCODE = 'insufficient_privilege';
        END IF;
    END IF;
    RETURN NEW;
END
$$;

-- These functions must not find a table or function of the same name in another schema.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['repair_request_stamp()', 'repair_request_decide()', 'dlq_action_stamp()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END
$$;
-- +goose StatementEnd

-- The function runs as the owner, so no other role may use it in a trigger on a table of that role.
-- The existing trigger works without this privilege.
REVOKE EXECUTE ON FUNCTION dlq_action_link() FROM PUBLIC;

CREATE TRIGGER stamp
    BEFORE INSERT ON repair_request
    FOR EACH ROW EXECUTE FUNCTION repair_request_stamp();
CREATE TRIGGER decide
    BEFORE UPDATE ON repair_request
    FOR EACH ROW EXECUTE FUNCTION repair_request_decide();
CREATE TRIGGER append_only
    BEFORE DELETE OR TRUNCATE ON repair_request
    FOR EACH STATEMENT EXECUTE FUNCTION projector_refuse_rewriting();
