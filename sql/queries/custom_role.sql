-- The role that runs the SQL of a custom projection. It is a role without access to the projector's
-- own tables if the login is a member of that role (see roles.sql), else the login.
SELECT coalesce((
    SELECT rolname FROM pg_roles
    WHERE rolname = 'projector_projection' AND pg_has_role(session_user, oid, 'MEMBER')
      AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
      AND current_schema() IS DISTINCT FROM 'projector_rebuild'), '');
