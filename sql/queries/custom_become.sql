-- Switches to the role that custom_role.sql returns, until the transaction ends.
SELECT set_config('role', rolname, true)
FROM pg_roles
WHERE rolname = 'projector_projection' AND pg_has_role(session_user, oid, 'MEMBER')
  AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)
  AND current_schema() IS DISTINCT FROM 'projector_rebuild';
