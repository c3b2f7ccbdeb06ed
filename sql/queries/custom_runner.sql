-- The role that runs the SQL of custom projections in this database, if this session does not
-- switch to it (custom_role.sql). Empty: the login runs it. sql/roles.sql creates the function.
SELECT coalesce((
    SELECT rolname FROM pg_roles
    WHERE rolname = 'projector_projection' AND to_regprocedure('projector_contained(text, boolean, text)') IS NOT NULL
      AND (NOT pg_has_role(session_user, oid, 'MEMBER') OR (SELECT rolsuper FROM pg_roles WHERE rolname = session_user))), '');
