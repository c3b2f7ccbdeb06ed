-- Who could write although four eyes are wanted: the operators' role, or a member of it, by
-- itself or as another role; by a grant, or by putting something of its own where an approver's
-- session looks for functions and tables. Requests are there to be made.
WITH operators AS (
    SELECT who.oid, who.rolname, becomes.oid AS becomes, becomes.rolname AS becoming, becomes.rolcreaterole
    FROM pg_roles who
    JOIN pg_roles becomes ON pg_has_role(who.oid, becomes.oid, 'MEMBER')
    WHERE to_regrole('projector_operator') IS NOT NULL
      AND pg_has_role(who.oid, to_regrole('projector_operator'), 'MEMBER') AND NOT who.rolsuper
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
)
SELECT o.rolname || ' ' || w.way || CASE WHEN o.oid = o.becomes THEN '' ELSE ' as ' || o.becoming END
FROM operators o
JOIN ways w USING (oid, becomes)
ORDER BY w.n, o.rolname = 'projector_operator' DESC, o.oid <> o.becomes DESC, 1
LIMIT 3;
