-- Returns the role that runs the SQL of custom projections in this database, if this session does
-- not switch to that role (custom_become.sql). An empty result means that the login runs the SQL. The
-- function is created by sql/roles.sql.
SELECT coalesce((
    SELECT rolname FROM pg_roles
    WHERE rolname = 'projector_projection' AND to_regprocedure('projector_contained(text, boolean, text)') IS NOT NULL
      AND (NOT pg_has_role(session_user, oid, 'MEMBER') OR (SELECT rolsuper FROM pg_roles WHERE rolname = session_user))), '');
