-- Returns the GRANT that the current role needs to create the first table. The result is empty if
-- no grant is missing. It is also empty for a login that sql/roles.sql has made for other work than
-- migrations, because such a login must not own the tables.
SELECT CASE
    WHEN to_regclass('projector_schema_version') IS NOT NULL OR has_schema_privilege(current_schema(), 'CREATE')
        OR EXISTS (
            SELECT FROM pg_roles
            WHERE rolname IN ('projector_runtime', 'projector_operator', 'projector_approver', 'projector_reader')
                AND pg_has_role(current_user, oid, 'MEMBER')
        )
        THEN ''
    ELSE format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', COALESCE(current_schema(), 'public'), current_user)
END;
