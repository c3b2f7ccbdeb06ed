-- The tables of a rebuild are created by the owner of the read model. An index expression, a CHECK,
-- a default and a generated column are code of the owner of a table. If another role owns a table,
-- only its columns, keys and simple defaults are copied. So no code of that other role runs as the
-- owner of the read model.

--
-- The columns rival_partition and rival_offset of parked_event are not written any more, because a
-- rebuild compares at exactly the positions of the consumers. The next release drops them.

-- +goose Up
-- +goose StatementBegin
-- Returns the columns of a table as text for CREATE TABLE. If keys_only is true, it returns only
-- the columns of the primary key. A domain can have a CHECK, so its base type is used instead. The
-- base type is also used for the elements of an array. A default is copied only if it is a literal
-- or the current time.
CREATE FUNCTION projector_rebuild_columns(source regclass, keys_only boolean) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    col     record;
    type    record;
    base    oid;
    element oid;
    mods    int;
    result  text := '';
BEGIN
    FOR col IN
        SELECT a.attname, a.atttypid, a.atttypmod, a.attcollation, pg_get_expr(d.adbin, d.adrelid) AS written
        FROM pg_attribute a
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = ''
        LEFT JOIN pg_constraint k ON k.conrelid = source AND k.contype = 'p'
        WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped
          AND (NOT keys_only OR a.attnum = ANY (k.conkey))
        ORDER BY CASE WHEN keys_only THEN array_position(k.conkey, a.attnum) END, a.attnum
    LOOP
        base := col.atttypid;
        mods := col.atttypmod;
        LOOP
            SELECT typtype, typbasetype, typtypmod, typelem, typcategory INTO type FROM pg_type WHERE oid = base;
            IF type.typtype = 'd' THEN
                base := type.typbasetype;
                mods := greatest(mods, type.typtypmod);
            ELSIF type.typcategory = 'A' AND (SELECT typtype FROM pg_type WHERE oid = type.typelem) = 'd' THEN
                element := type.typelem;
                WHILE (SELECT typtype FROM pg_type WHERE oid = element) = 'd' LOOP
                    SELECT typbasetype INTO element FROM pg_type WHERE oid = element;
                END LOOP;
                base := (SELECT typarray FROM pg_type WHERE oid = element);
                mods := -1;
                EXIT;
            ELSE
                EXIT;
            END IF;
        END LOOP;
        result := result || CASE WHEN result = '' THEN '' ELSE ', ' END || quote_ident(col.attname) || ' ' || format_type(base, mods);
        IF col.attcollation <> 0 THEN
            result := result || ' COLLATE ' || (SELECT format('%I.%I', n.nspname, c.collname) FROM pg_collation c
                                            JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = col.attcollation);
        END IF;
        IF NOT keys_only AND col.written ~ ('^([0-9]+(\.[0-9]+)?|true|false|now\(\)|CURRENT_TIMESTAMP|CURRENT_DATE'
            || '|''([^''\\]|'''')*''::(text|character varying|bpchar|jsonb?|date|timestamp with time zone|uuid|numeric|bigint|integer|boolean))$') THEN
            result := result || ' DEFAULT ' || col.written;
        END IF;
    END LOOP;
    RETURN result;
END
$$;

-- Copies an empty table into the schema of a rebuild. If the owner of the read model or a superuser
-- owns the table, the copy is complete. Otherwise the copy has the plain columns, the primary key,
-- and the unique indexes of plain columns. ON CONFLICT may need these indexes.
CREATE FUNCTION projector_rebuild_copy(source regclass, named text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    keys record;
BEGIN
    IF EXISTS (SELECT FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
               WHERE c.oid = source AND (r.rolsuper OR r.rolname = current_user)) THEN
        EXECUTE format('CREATE UNLOGGED TABLE projector_rebuild.%I (LIKE %s INCLUDING ALL)', named, source);
        RETURN;
    END IF;
    EXECUTE format('CREATE UNLOGGED TABLE projector_rebuild.%I (%s)', named, projector_rebuild_columns(source, false));
    FOR keys IN
        SELECT i.indisprimary,
               (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.n)
                FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
                JOIN pg_attribute a ON a.attrelid = source AND a.attnum = k.attnum
                WHERE k.n <= i.indnkeyatts) AS columns
        FROM pg_index i
        WHERE i.indrelid = source AND i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL AND i.indisvalid
    LOOP
        EXECUTE format('ALTER TABLE projector_rebuild.%I ADD %s (%s)', named,
                       CASE WHEN keys.indisprimary THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, keys.columns);
    END LOOP;
END
$$;

-- This replaces the function of migration 00017. The new function copies tables with
-- projector_rebuild_copy.
CREATE OR REPLACE FUNCTION projector_rebuild_tables(copied text[], noted text[]) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    lock   bigint := hashtextextended('projector rebuild ' || current_database(), 7215);
    caller name := session_user;
    model  name := current_schema();
    one    text;
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
        PERFORM projector_rebuild_copy(format('%I.%I', model, one)::regclass, one);
    END LOOP;
    FOREACH one IN ARRAY noted LOOP
        -- The key; what the live row was, as a number; its sums and the rebuilt ones.
        EXECUTE format('CREATE UNLOGGED TABLE projector_rebuild.%I (%s, _kind text, _digest bigint, _was jsonb, _becomes jsonb, _chosen boolean)',
            'difference_' || one, projector_rebuild_columns(format('%I.%I', model, one)::regclass, true));
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

-- This replaces the function of migration 00017. The new function analyzes only the columns,
-- because ANALYZE of a whole table would evaluate the expressions of its indexes.
CREATE OR REPLACE FUNCTION projector_rebuild_analyze() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    one text;
BEGIN
    FOR one IN
        SELECT format('projector_rebuild.%I (%s)', c.relname, string_agg(quote_ident(a.attname), ', '))
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::regnamespace
        WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace('projector_rebuild')
        GROUP BY c.relname
    LOOP
        EXECUTE 'ANALYZE ' || one;
    END LOOP;
END
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['projector_rebuild_tables(text[], text[])', 'projector_rebuild_analyze()',
                                'projector_rebuild_copy(regclass, text)', 'projector_rebuild_columns(regclass, boolean)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END
$$;
-- +goose StatementEnd
COMMENT ON COLUMN parked_event.rival_partition IS 'Not written any more; the next release drops it.';
COMMENT ON COLUMN parked_event.rival_offset IS 'Not written any more; the next release drops it.';
