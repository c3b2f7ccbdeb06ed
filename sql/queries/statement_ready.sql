-- Returns the reasons why this session cannot write statements, one per row. No row means that it
-- is ready. The queries with column lists fail if such a column was removed after the start of the
-- program.
SELECT 'read-only' AS problem
WHERE pg_is_in_recovery() OR current_setting('transaction_read_only')::bool
UNION ALL
SELECT needed.privilege || ' on ' || needed.relation
FROM (VALUES ('account_statement', 'SELECT'), ('account_statement', 'INSERT'),
             ('projector_position', 'SELECT'), ('projector_position', 'INSERT'), ('projector_position', 'UPDATE'),
             ('projector_source', 'SELECT'), ('projector_source', 'INSERT')
     ) AS needed (relation, privilege)
WHERE NOT has_table_privilege(needed.relation, needed.privilege)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT account_id, version, event_id, event_type, amount, currency, occurred_at, correlation_id,
           source_partition, source_offset
    FROM account_statement WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, updated_at, projection,
           leader_epoch, leader_epoch_at, judged_epoch, judged_epoch_at, stopped_reason, stopped_end,
           halted_reason, halted_fence, set_by_hand
    FROM projector_position WHERE false);
