-- This adds a function for clients of the database. The function waits until an account has reached
-- a version.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION projector_await(account_id text, version bigint, within interval) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    ends      CONSTANT timestamptz := clock_timestamp() + within;
    isolation CONSTANT text := current_setting('transaction_isolation');
    reached   bigint;
    remaining double precision;
BEGIN
    IF isolation NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'projector_await: in a transaction that is % nothing is seen of what is committed meanwhile', isolation
            USING ERRCODE = 'active_sql_transaction',
                  HINT = 'Call it outside of a transaction, or in one that is READ COMMITTED.';
    END IF;
    LOOP
        -- Each statement sees what was committed before it. Without a balance row there is no
        -- version: this also spares the look at what is parked.
        SELECT c.version INTO reached
        FROM account_balance_current c
        WHERE c.account_id = projector_await.account_id AND c.version IS NOT NULL;
        remaining := extract(epoch FROM ends - clock_timestamp());
        IF reached >= projector_await.version OR remaining <= 0 THEN
            RETURN reached;
        END IF;
        PERFORM pg_sleep(least(remaining, 0.02));
    END LOOP;
END
$$;

-- The function must not find a table of the same name in another schema.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION projector_await(text, bigint, interval) SET search_path = %I, pg_temp', current_schema());
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION projector_await(text, bigint, interval) IS 'Waits until the account has reached the version; returns the version it has then, NULL when it has no row by then. It holds a connection and a snapshot while it waits.';
