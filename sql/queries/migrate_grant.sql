-- Returns the GRANT that the current role needs to create the first table. The result is empty if
-- no grant is missing.
SELECT CASE
    WHEN to_regclass('projector_schema_version') IS NOT NULL OR has_schema_privilege(current_schema(), 'CREATE')
        THEN ''
    ELSE format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', COALESCE(current_schema(), 'public'), current_user)
END;
