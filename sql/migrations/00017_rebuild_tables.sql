-- A function that runs as the owner creates the tables of a rebuild. So the login that rebuilds
-- needs no right to create anything, and no other login can replace these tables. A row of the
-- audit trail gets the time at which it was written. Its writer cannot set another time.

-- +goose Up
-- +goose StatementBegin
-- Creates empty tables in the schema projector_rebuild. For each table that the parameter copied
-- names, the function creates a copy. For each table that the parameter noted names, the function
-- also creates a table for the differences, with the primary key of the named table. The function
-- first drops the tables of an earlier rebuild. With two empty lists, it only drops tables.
--
-- The function runs as its owner. It copies the columns of tables of the read model, but no rows.
-- Only its caller may use the new tables.
CREATE FUNCTION projector_rebuild_tables(copied text[], noted text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    lock   bigint := hashtextextended('projector rebuild ' || current_database(), 7215);
    caller name := session_user;
    model  name := current_schema();
    one    text;
    keys   text;
BEGIN
    IF NOT pg_try_advisory_lock(lock) THEN
        RAISE EXCEPTION 'another rebuild of this database is under way' USING ERRCODE = 'lock_not_available';
    END IF;
    PERFORM pg_advisory_unlock(lock); -- whoever rebuilds holds it for the session, by a statement of its own
    DROP SCHEMA IF EXISTS projector_rebuild CASCADE;
    IF cardinality(copied) = 0 THEN
        RETURN;
    END IF;
    IF current_setting('role') <> 'none' THEN
        caller := current_setting('role'); -- who the caller has become, by SET ROLE
    END IF;
    CREATE SCHEMA projector_rebuild;
    FOREACH one IN ARRAY copied LOOP
        EXECUTE format('CREATE UNLOGGED TABLE projector_rebuild.%I (LIKE %I.%I INCLUDING ALL)', one, model, one);
    END LOOP;
    FOREACH one IN ARRAY noted LOOP
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(k.conkey, a.attnum)) INTO keys
        FROM pg_constraint k
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
        WHERE k.contype = 'p' AND k.conrelid = format('%I.%I', model, one)::regclass;
        -- The key; what the live row was, as a number; its sums and the rebuilt ones.
        EXECUTE format('CREATE UNLOGGED TABLE projector_rebuild.%I AS
            SELECT %s, ''''::text AS _kind, 0::bigint AS _digest, NULL::jsonb AS _was, NULL::jsonb AS _becomes, false AS _chosen
            FROM %I.%I WITH NO DATA', 'difference_' || one, keys, model, one);
    END LOOP;
    IF 'account_balance' = ANY (copied) THEN
        -- What is to be changed. The live version when it was compared; how many events waited
        -- beyond the park limit when that was last looked at; the number of the transaction
        -- that has changed it, and the version it has since.
        CREATE UNLOGGED TABLE projector_rebuild.difference (
            account_id text PRIMARY KEY,
            kind       text NOT NULL,
            version    bigint,
            overflowed bigint,
            swap       int,
            rebuilt    bigint
        );
        -- The repairs that are done again.
        CREATE UNLOGGED TABLE projector_rebuild.known_action (id bigint);
    END IF;
    -- Default privileges of the owner must not let anybody else in.
    EXECUTE (SELECT coalesce(string_agg(format('REVOKE ALL ON SCHEMA projector_rebuild FROM %s', grantee), '; '), 'SELECT')
             FROM (SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
                   FROM pg_namespace n, aclexplode(n.nspacl) a
                   WHERE n.nspname = 'projector_rebuild' AND a.grantee <> n.nspowner) AS others);
    EXECUTE format('GRANT USAGE ON SCHEMA projector_rebuild TO %I', caller);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA projector_rebuild TO %I', caller);
END
$$;

-- Runs ANALYZE on the tables of a rebuild. It is a function of their owner, because no other login
-- may run ANALYZE on them.
CREATE FUNCTION projector_rebuild_analyze() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    one text;
BEGIN
    FOR one IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'projector_rebuild' LOOP
        EXECUTE 'ANALYZE ' || one;
    END LOOP;
END
$$;

-- This replaces the function of migration 00011. The new function also sets the time.
CREATE OR REPLACE FUNCTION dlq_action_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    request text := current_setting('projector.request', true);
BEGIN
    NEW.at := now();
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

-- The first two functions run as their owner for any caller, so they must find objects in this
-- schema only. The trigger function runs as the login that adds a row, and must not use objects
-- that this login has created.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['projector_rebuild_tables(text[], text[])', 'projector_rebuild_analyze()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
    EXECUTE format('ALTER FUNCTION dlq_action_stamp() SET search_path = %I, pg_temp', current_schema());
END
$$;
-- +goose StatementEnd
