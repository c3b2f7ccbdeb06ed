-- The role that the SQL of a custom projection runs as: one that cannot touch the
-- projector's own tables, where the login was made a member of it (roles.sql), else the login.
SELECT coalesce((
    SELECT rolname FROM pg_roles
    WHERE rolname = 'projector_projection' AND pg_has_role(session_user, oid, 'MEMBER')
      AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
      AND current_schema() IS DISTINCT FROM 'projector_rebuild'), '');
