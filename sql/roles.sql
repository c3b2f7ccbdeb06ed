-- This file creates the roles of the database and their grants. Run it with psql in the database
-- and the schema (search_path) of the read model. The login must be allowed to create roles:
--
--     psql -v ON_ERROR_STOP=1 -f sql/roles.sql bank
--
-- Run it before or after `projector migrate`, and as often as necessary. `migrate` repeats the
-- second half of this file, so that new tables get their grants too.
--
-- The roles cannot log in. Grant the roles to logins, see docs/security.md.

DO $roles$
DECLARE
    wanted text;
BEGIN
    PERFORM set_config('client_min_messages', 'warning', true); -- no notice about what exists already
    FOREACH wanted IN ARRAY ARRAY['projector_migrator', 'projector_runtime', 'projector_operator', 'projector_approver', 'projector_reader', 'projector_projection'] LOOP
        IF to_regrole(wanted) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), wanted);
    END LOOP;
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO projector_migrator', current_schema());
    -- The tables of a rebuild are in a separate schema, which a function of the owner creates.
    EXECUTE format('GRANT CREATE ON DATABASE %I TO projector_migrator', current_database());
    -- Before PostgreSQL 15, every role could create tables in the schema public.
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
    -- A login that can connect can read the catalogs and hold advisory locks. A temporary table
    -- could hide another table of the same name. A login without one of these roles needs this
    -- grant: GRANT CONNECT ON DATABASE … TO …
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO projector_migrator, projector_runtime, projector_operator, projector_approver, projector_reader', current_database());
    -- The SQL of a custom projection runs as projector_projection. This role may use the tables
    -- that are granted to it, but no table of the projector. The operator is not a member of this
    -- role. Otherwise, an operator could write to those tables although the four-eyes policy is on.
    GRANT projector_projection TO projector_runtime, projector_approver;
    -- The SQL of a custom projection runs in this function, which the role projector_projection
    -- owns. Inside the function, PostgreSQL refuses every change of role. The role may not create
    -- objects in this schema, so it cannot replace the function. It could alter the function,
    -- because it is the owner. If an altered function permits a change of role, it refuses to run
    -- the SQL, and a new run of this file repairs it.
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT projector_projection TO %I', current_user);
    END IF;
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO projector_projection', current_schema());
    DROP FUNCTION IF EXISTS projector_contained(text, boolean, text);
    CREATE FUNCTION projector_contained(statement text, explained boolean, path text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $contained$
    DECLARE
        answer  text;
        refused boolean := false;
    BEGIN
        BEGIN
            PERFORM set_config('role', 'none', true);
        EXCEPTION WHEN insufficient_privilege THEN
            refused := true;
        END;
        IF NOT refused OR current_user <> 'projector_projection' THEN
            RAISE EXCEPTION 'the SQL of a custom projection is not contained: run sql/roles.sql again' USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF path <> '' THEN
            PERFORM set_config('search_path', path, true);
        END IF;
        IF explained THEN
            EXECUTE statement INTO answer;
        ELSE
            EXECUTE statement;
        END IF;
        RETURN answer;
    END
    $contained$;
    ALTER FUNCTION projector_contained(text, boolean, text) OWNER TO projector_projection;
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM projector_projection', current_schema());
    REVOKE ALL ON FUNCTION projector_contained(text, boolean, text) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION projector_contained(text, boolean, text) TO projector_runtime, projector_approver;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('REVOKE projector_projection FROM %I', current_user);
    END IF;
    -- An earlier version of this file made the operator a member of the role projector_runtime.
    -- When the four-eyes policy is turned on, the rights of the operator to write are revoked.
    -- Rights that come from a membership cannot be revoked, so the operator gets all rights
    -- directly.
    IF EXISTS (SELECT FROM pg_auth_members WHERE roleid = to_regrole('projector_runtime') AND member = to_regrole('projector_operator')) THEN
        REVOKE projector_runtime FROM projector_operator;
    END IF;
    PERFORM set_config('projector.whole_file', 'on', false);
END
$roles$;

-- Grants. `projector migrate` repeats the rest of this file.
DO $grants$
DECLARE
    line      record;
    wanted    text;
    four_eyes boolean := false;
BEGIN
    -- A login that runs the whole file need not own the tables, and then it cannot grant anything
    -- on them. `projector migrate` does it, and fails without the right to do it.
    IF current_setting('projector.whole_file', true) = 'on' AND
        to_regclass('repair_policy') IS NOT NULL AND NOT has_table_privilege('repair_policy', 'SELECT') THEN
        RAISE NOTICE 'the tables belong to another role: projector migrate makes the grants on them';
        RETURN;
    END IF;
    -- Only one session at a time may change the grants. Any login can acquire this lock and never
    -- release it, so the wait for the lock is limited.
    FOR i IN 1..100 LOOP
        EXIT WHEN pg_try_advisory_xact_lock(hashtext('projector grants'));
        PERFORM pg_sleep(0.1);
    END LOOP;
    IF to_regclass('repair_policy') IS NOT NULL THEN
        SELECT p.four_eyes INTO four_eyes FROM repair_policy p;
    END IF;
    FOR line IN
        WITH runtime (relation, privileges) AS (VALUES
            -- projector_runtime is the role of `run`. The role cannot delete a balance, a statement
            -- or a position. For each event that `run` fetches from the outbox, it adds a row to
            -- the audit trail. It cannot read the trail, except for the view projector_decision.
            ('account_balance', 'SELECT INSERT UPDATE'),
            ('projector_position', 'SELECT INSERT UPDATE'),
            ('projector_source', 'SELECT INSERT'),
            ('parked_event', 'SELECT INSERT UPDATE DELETE'),
            ('park_overflow', 'SELECT INSERT UPDATE DELETE'),
            ('account_hold', 'SELECT'),
            ('projector_schema_version', 'SELECT'),
            ('projector_decision', 'SELECT'),
            ('account_statement', 'SELECT INSERT'),
            ('daily_turnover', 'SELECT INSERT UPDATE'),
            ('inbox', 'SELECT INSERT DELETE'),
            ('inbox_pruned', 'SELECT INSERT UPDATE'),
            ('projection_account', 'SELECT INSERT UPDATE'),
            ('projection_parked_event', 'SELECT INSERT UPDATE DELETE'),
            ('projection_park_overflow', 'SELECT INSERT UPDATE DELETE'),
            ('projection_hold', 'SELECT'),
            ('projection_file', 'SELECT INSERT UPDATE'),
            ('new_events', 'SELECT')
        ), repairs (relation, privileges) AS (
            -- These privileges are for the commands that read and repair. Such commands need all
            -- privileges of a running projector. They may also replace and delete rows, as
            -- `rebuild` does, and read the audit trail.
            SELECT relation, privileges FROM runtime
            UNION ALL VALUES ('account_balance', 'DELETE'), ('projection_account', 'DELETE'), ('account_statement', 'UPDATE DELETE'), ('daily_turnover', 'DELETE'),
                             ('account_balance_current', 'SELECT'), ('account_statement_missing', 'SELECT'),
                             ('account_skipped', 'SELECT'), ('account_statement_balance', 'SELECT'),
                             ('account_opening', 'SELECT INSERT UPDATE'),
                             ('dlq_action', 'SELECT'), ('repair_request', 'SELECT'), ('repair_policy', 'SELECT')
        )
        SELECT 'projector_runtime' AS grantee, relation, privileges FROM runtime
        UNION ALL
        -- projector_operator may read. If the four-eyes policy is off, it may also repair.
        SELECT 'projector_operator', relation, privileges FROM repairs
        UNION ALL
        -- projector_approver repairs what another login has requested.
        SELECT 'projector_approver', relation, privileges FROM repairs
        UNION ALL VALUES
            -- projector_reader is for users of the read model. It may read the view with the column
            -- stale, but not the table of balances. It may also read what `account statement`
            -- needs.
            ('projector_reader', 'account_balance_current', 'SELECT'),
            ('projector_reader', 'account_hold', 'SELECT'),
            ('projector_reader', 'account_statement', 'SELECT'),
            ('projector_reader', 'account_statement_missing', 'SELECT'),
            ('projector_reader', 'account_skipped', 'SELECT'),
            ('projector_reader', 'account_statement_balance', 'SELECT'),
            ('projector_reader', 'projector_position', 'SELECT'),
            ('projector_reader', 'projector_source', 'SELECT'),
            ('projector_reader', 'projector_schema_version', 'SELECT'),
            ('projector_reader', 'daily_turnover', 'SELECT'),
            ('projector_reader', 'projection_hold', 'SELECT'),
            -- projector_projection is the role that runs the SQL of a custom projection.
            ('projector_projection', 'new_events', 'SELECT')
    LOOP
        CONTINUE WHEN to_regrole(line.grantee) IS NULL OR to_regclass(line.relation) IS NULL;
        FOREACH wanted IN ARRAY string_to_array(line.privileges, ' ') LOOP
            IF four_eyes AND line.grantee = 'projector_operator' AND wanted <> 'SELECT' THEN
                EXECUTE format('REVOKE %s ON %s FROM %I', wanted, line.relation::regclass, line.grantee);
            ELSIF NOT has_table_privilege(line.grantee, line.relation, wanted) THEN
                EXECUTE format('GRANT %s ON %s TO %I', wanted, line.relation::regclass, line.grantee);
            END IF;
        END LOOP;
    END LOOP;
    -- A login that adds a row to the audit trail may set only the columns that say what was done
    -- and why. Triggers set the number, time, login, approval and hash of the row. The triggers let
    -- projector_runtime add only rows for events that it has fetched.
    FOR line IN
        SELECT grantee, string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns,
               bool_and(has_column_privilege(grantee, attrelid, attnum, 'INSERT')) AS granted
        FROM unnest(ARRAY['projector_runtime', 'projector_operator', 'projector_approver']) AS grantee
        JOIN pg_attribute ON attrelid = to_regclass('dlq_action') AND attnum > 0 AND NOT attisdropped AND attname NOT IN
            ('id', 'at', 'db_user', 'approved_by', 'approval_reason', 'request_id', 'requested_by', 'chain', 'hash')
        WHERE to_regrole(grantee) IS NOT NULL
        GROUP BY grantee
    LOOP
        IF has_table_privilege(line.grantee, 'dlq_action', 'INSERT') OR four_eyes AND line.grantee = 'projector_operator' THEN
            EXECUTE format('REVOKE INSERT ON dlq_action FROM %I', line.grantee); -- this also revokes the right from all columns
            line.granted := false;
        END IF;
        IF NOT line.granted AND NOT (four_eyes AND line.grantee = 'projector_operator') THEN
            EXECUTE format('GRANT INSERT (%s) ON dlq_action TO %I', line.columns, line.grantee);
        END IF;
    END LOOP;
    -- Before another person approves a rebuild, an operator may run it to compare the rows. A
    -- function of the owner creates the tables of the rebuild. Readers of balances may wait for a
    -- version, even if PUBLIC may not execute functions.
    FOR line IN
        SELECT * FROM (VALUES
            ('projector_runtime', 'projector_custom(text, text)'),
            ('projector_operator', 'projector_custom(text, text)'),
            ('projector_approver', 'projector_custom(text, text)'),
            ('projector_operator', 'projector_rebuild_tables(text[], text[])'),
            ('projector_operator', 'projector_rebuild_analyze()'),
            ('projector_operator', 'projector_await(text, bigint, interval)'),
            ('projector_approver', 'projector_rebuild_tables(text[], text[])'),
            ('projector_approver', 'projector_rebuild_analyze()'),
            ('projector_approver', 'projector_await(text, bigint, interval)'),
            ('projector_reader', 'projector_await(text, bigint, interval)')
        ) AS needed (grantee, function)
        WHERE to_regrole(grantee) IS NOT NULL AND to_regprocedure(function) IS NOT NULL
    LOOP
        IF NOT has_function_privilege(line.grantee, line.function, 'EXECUTE') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', line.function::regprocedure, line.grantee);
        END IF;
    END LOOP;
    -- A login that makes a request may set only the columns that say what to do and why. Triggers
    -- set the login, and whether the request was approved. An approver decides about a request, and
    -- cannot change anything else in it.
    FOR line IN
        SELECT * FROM (VALUES
            ('projector_operator', 'INSERT', 'action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor, reason'),
            ('projector_approver', 'INSERT', 'action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor, reason'),
            ('projector_approver', 'UPDATE', 'state, decision_reason')
        ) AS needed (grantee, privilege, columns)
        WHERE to_regrole(grantee) IS NOT NULL AND to_regclass('repair_request') IS NOT NULL
    LOOP
        IF NOT has_any_column_privilege(line.grantee, 'repair_request', line.privilege) THEN
            EXECUTE format('GRANT %s (%s) ON repair_request TO %I', line.privilege, line.columns, line.grantee);
        END IF;
    END LOOP;
END
$grants$;
