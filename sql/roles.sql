-- Who may do what in the database. Plain SQL: run it with psql, once, as somebody who
-- may create roles, in the database and the schema (search_path) of the read model:
--
--     psql -v ON_ERROR_STOP=1 -f sql/roles.sql bank
--
-- before or after `projector migrate`, and as often as you like. The second half
-- is part of the program too: `migrate` repeats it, so that a table that a new version
-- adds is granted with it.
--
-- The roles cannot log in. Give them to users who can: docs/security.md.

DO $roles$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['projector_migrator', 'projector_runtime', 'projector_operator', 'projector_reader'] LOOP
        IF to_regrole(wanted) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), wanted);
    END LOOP;
    EXECUTE format('GRANT CREATE ON SCHEMA %I TO projector_migrator', current_schema());
    -- A rebuild has its tables in a schema of its own.
    EXECUTE format('GRANT CREATE ON DATABASE %I TO projector_migrator', current_database());
    -- Before PostgreSQL 15 everybody could create tables in "public".
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
    -- Who repairs does what a running projector does, and leaves a trace of it.
    GRANT projector_runtime TO projector_operator;
END
$roles$;

-- Grants. From here on repeated by `projector migrate`.
DO $grants$
DECLARE
    line   record;
    wanted text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('projector grants')); -- one at a time, from many places
    FOR line IN
        SELECT * FROM (VALUES
            -- projector_runtime: `run`. It cannot delete a balance, a statement or a position.
            ('projector_runtime', 'account_balance', 'SELECT INSERT UPDATE'),
            ('projector_runtime', 'projector_position', 'SELECT INSERT UPDATE'),
            ('projector_runtime', 'projector_source', 'SELECT INSERT'),
            ('projector_runtime', 'parked_event', 'SELECT INSERT UPDATE DELETE'),
            ('projector_runtime', 'park_overflow', 'SELECT INSERT UPDATE DELETE'),
            ('projector_runtime', 'account_hold', 'SELECT'),
            ('projector_runtime', 'projector_schema_version', 'SELECT'),
            ('projector_runtime', 'account_statement', 'SELECT INSERT'),
            ('projector_runtime', 'daily_turnover', 'SELECT INSERT UPDATE'),
            ('projector_runtime', 'inbox', 'SELECT INSERT DELETE'),
            ('projector_runtime', 'inbox_pruned', 'SELECT INSERT UPDATE'),
            -- projector_operator: the commands that look and repair. The trail can only grow.
            ('projector_operator', 'account_balance_current', 'SELECT'),
            ('projector_operator', 'dlq_action', 'SELECT INSERT'),
            ('projector_operator', 'account_skipped', 'SELECT'),
            ('projector_operator', 'account_statement_balance', 'SELECT'),
            -- projector_reader: whoever uses the read model. Of balances only what says when
            -- it is stale, and of the rest what `account statement` needs.
            ('projector_reader', 'account_balance_current', 'SELECT'),
            ('projector_reader', 'account_hold', 'SELECT'),
            ('projector_reader', 'account_statement', 'SELECT'),
            ('projector_reader', 'account_statement_missing', 'SELECT'),
            ('projector_reader', 'account_skipped', 'SELECT'),
            ('projector_reader', 'account_statement_balance', 'SELECT'),
            ('projector_reader', 'projector_position', 'SELECT'),
            ('projector_reader', 'projector_source', 'SELECT'),
            ('projector_reader', 'projector_schema_version', 'SELECT'),
            ('projector_reader', 'daily_turnover', 'SELECT')
        ) AS needed (grantee, relation, privileges)
        WHERE to_regrole(grantee) IS NOT NULL AND to_regclass(relation) IS NOT NULL
    LOOP
        FOREACH wanted IN ARRAY string_to_array(line.privileges, ' ') LOOP
            IF NOT has_table_privilege(line.grantee, line.relation, wanted) THEN
                EXECUTE format('GRANT %s ON %s TO %I', wanted, line.relation::regclass, line.grantee);
            END IF;
        END LOOP;
    END LOOP;
END
$grants$;
