-- Switches to the role that runs the SQL of a custom projection, until the transaction ends. That
-- role has no access to the tables of the projector. Nothing is switched if the login is not a
-- member of the role (see roles.sql), and then the login runs the SQL.
SELECT set_config('role', rolname, true)
FROM pg_roles
WHERE rolname = 'projector_projection' AND pg_has_role(session_user, oid, 'MEMBER')
  AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
  AND current_schema() IS DISTINCT FROM 'projector_rebuild';
