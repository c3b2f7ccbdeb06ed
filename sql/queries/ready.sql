-- Returns the reasons why this session cannot write a projection, one per row. No row means that it
-- is ready. The queries with column lists fail if such a column was removed after the start of the
-- program. The file ready.go has the tables and their columns.
SELECT 'read-only' AS problem
WHERE pg_is_in_recovery() OR current_setting('transaction_read_only')::bool
UNION ALL
SELECT needed.privilege || ' on ' || needed.relation
FROM (VALUES {privileges}) AS needed (relation, privilege)
WHERE NOT has_table_privilege(needed.relation, needed.privilege)
{probes};
