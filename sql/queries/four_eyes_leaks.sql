-- Who could write although four eyes are wanted: the operators' role, or a member of it, by
-- itself or as another role. Requests are there to be made.
SELECT who.rolname || ' may write ' || string_agg(c.relname, ', ' ORDER BY c.relname)
       || CASE WHEN who.oid = becomes.oid THEN '' ELSE ' as ' || becomes.rolname END
FROM pg_roles who
JOIN pg_roles becomes ON pg_has_role(who.oid, becomes.oid, 'MEMBER')
JOIN pg_class c ON c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname <> 'repair_request'
WHERE to_regrole('projector_operator') IS NOT NULL
  AND pg_has_role(who.oid, to_regrole('projector_operator'), 'MEMBER') AND NOT who.rolsuper
  AND (has_table_privilege(becomes.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
       OR has_any_column_privilege(becomes.oid, c.oid, 'INSERT, UPDATE'))
GROUP BY who.oid, who.rolname, becomes.oid, becomes.rolname
ORDER BY who.rolname = 'projector_operator' DESC, who.oid <> becomes.oid DESC, 1
LIMIT 3;
