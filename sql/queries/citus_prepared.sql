-- Returns the prepared transactions of Citus on each node, and the nodes that could not be queried.
SELECT CASE WHEN success THEN '' ELSE 'node ' || nodeid || ': ' || result END,
       CASE WHEN success THEN ARRAY (SELECT json_array_elements_text(result::json)) ELSE '{}' END
FROM run_command_on_all_nodes($$
    SELECT coalesce(json_agg(gid), '[]') FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE 'citus\_%'
$$);
