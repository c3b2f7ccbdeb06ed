-- Returns up to three ways in which the operators role, or a member of it, could write without
-- approval, directly or through another role. These are the ways:
-- - a grant on a table,
-- - the right to create objects or schemas where an approver's session would use them,
-- - the right to create roles,
-- - files or programs of the server,
-- - a volatile SECURITY DEFINER function whose owner may write. The effect of a function cannot be
--   found out, so all such functions count, except those of the projector and of extensions.
-- Operators may insert requests, so a grant on that table does not count.
WITH operators AS (
    SELECT who.oid, who.rolname, becomes.oid AS becomes, becomes.rolname AS becoming, becomes.rolcreaterole
    FROM pg_roles who
    JOIN pg_roles becomes ON pg_has_role(who.oid, becomes.oid, 'MEMBER')
    WHERE who.oid IN ({operators})
), ways AS (
    SELECT o.oid, o.becomes, 1 AS n, 'may write ' || string_agg(c.relname, ', ' ORDER BY c.relname) AS way
    FROM operators o
    JOIN pg_class c ON c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname <> 'repair_request'
    WHERE has_table_privilege(o.becomes, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
       OR has_any_column_privilege(o.becomes, c.oid, 'INSERT, UPDATE')
    GROUP BY o.oid, o.becomes
    UNION ALL
    SELECT o.oid, o.becomes, 2, 'may create objects in schema ' || string_agg(quote_ident(s.name), ', ' ORDER BY s.name) || ', which approvers would use'
    FROM operators o
    JOIN unnest(current_schemas(false)) AS s (name) ON has_schema_privilege(o.becomes, s.name, 'CREATE')
    GROUP BY o.oid, o.becomes
    UNION ALL
    SELECT oid, becomes, 3, 'may create schemas, also one named like an approver'
    FROM operators WHERE has_database_privilege(becomes, current_database(), 'CREATE')
    UNION ALL
    SELECT oid, becomes, 4, 'may create roles' FROM operators WHERE rolcreaterole
    UNION ALL
    SELECT oid, becomes, 5, 'may ' || CASE becoming WHEN 'pg_execute_server_program' THEN 'run programs' WHEN 'pg_write_server_files' THEN 'write files' ELSE 'read files' END || ' on the server'
    FROM operators WHERE becoming IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files')
    UNION ALL
    SELECT o.oid, o.becomes, 6, 'may run ' || string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.oid::regprocedure::text) || ', which has the rights of another role that may write'
    FROM operators o
    JOIN pg_proc p ON p.prosecdef AND p.provolatile = 'v' AND p.proowner <> o.becomes AND has_function_privilege(o.becomes, p.oid, 'EXECUTE')
        AND has_schema_privilege(o.becomes, p.pronamespace, 'USAGE')
    JOIN pg_class policy ON policy.oid = 'repair_policy'::regclass
    WHERE NOT (p.proowner = policy.relowner AND p.pronamespace = policy.relnamespace AND p.proname LIKE 'projector\_%')
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
      AND (p.proname = 'projector_contained' OR EXISTS (
          SELECT FROM pg_class c
          WHERE c.relnamespace = policy.relnamespace AND c.relkind IN ('r', 'p')
            AND (has_table_privilege(p.proowner, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') OR has_any_column_privilege(p.proowner, c.oid, 'INSERT, UPDATE'))))
    GROUP BY o.oid, o.becomes
)
SELECT o.rolname || ' ' || w.way || CASE WHEN o.oid = o.becomes THEN '' ELSE ' as ' || o.becoming END
FROM operators o
JOIN ways w USING (oid, becomes)
ORDER BY w.n, o.rolname = 'projector_operator' DESC, o.oid <> o.becomes DESC, 1
LIMIT 3;
