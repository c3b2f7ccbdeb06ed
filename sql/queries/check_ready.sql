-- Returns the reasons why this session cannot write the read model, one per row. No row means that
-- it is ready. The queries with column lists fail if such a column was removed after the start of
-- the program.
SELECT 'read-only' AS problem
WHERE pg_is_in_recovery() OR current_setting('transaction_read_only')::bool
UNION ALL
SELECT needed.privilege || ' on ' || needed.relation
FROM (VALUES ('account_balance', 'SELECT'), ('account_balance', 'INSERT'), ('account_balance', 'UPDATE'),
             ('projector_position', 'SELECT'), ('projector_position', 'INSERT'), ('projector_position', 'UPDATE'),
             ('projector_source', 'SELECT'), ('projector_source', 'INSERT'),
             ('parked_event', 'SELECT'), ('parked_event', 'INSERT'), ('parked_event', 'UPDATE'), ('parked_event', 'DELETE'),
             ('park_overflow', 'SELECT'), ('park_overflow', 'INSERT'), ('park_overflow', 'UPDATE'), ('park_overflow', 'DELETE'),
             ('account_hold', 'SELECT')
     ) AS needed (relation, privilege)
WHERE NOT has_table_privilege(needed.relation, needed.privilege)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT account_id, currency, balance, version, status, last_event_id, last_event_at, updated_at
    FROM account_balance WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, updated_at, projection,
           leader_epoch, leader_epoch_at, judged_epoch, judged_epoch_at, stopped_reason, stopped_end,
           halted_reason, halted_fence, set_by_hand
    FROM projector_position WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays,
           key, value, headers, parked_at
    FROM parked_event WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT account_id, lowest_version, highest_version, events, expected_version, since, topic, partition, first_offset, last_offset, first_version
    FROM park_overflow WHERE false);
