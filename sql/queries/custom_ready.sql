-- Returns the reasons why this session cannot write a custom projection, one per row. No row means
-- that it is ready. The tables of the projection are not checked here, because EXPLAIN of its
-- statements checks them. The queries with column lists fail if such a column was removed after the
-- start of the program.
SELECT 'read-only' AS problem
WHERE pg_is_in_recovery() OR current_setting('transaction_read_only')::bool
UNION ALL
SELECT needed.privilege || ' on ' || needed.relation
FROM (VALUES ('inbox', 'SELECT'), ('inbox', 'INSERT'), ('inbox', 'DELETE'),
             ('inbox_pruned', 'SELECT'), ('inbox_pruned', 'INSERT'), ('inbox_pruned', 'UPDATE'),
             ('projection_account', 'SELECT'), ('projection_account', 'INSERT'), ('projection_account', 'UPDATE'),
             ('projection_parked_event', 'SELECT'), ('projection_parked_event', 'INSERT'),
             ('projection_parked_event', 'UPDATE'), ('projection_parked_event', 'DELETE'),
             ('projection_park_overflow', 'SELECT'), ('projection_park_overflow', 'INSERT'),
             ('projection_park_overflow', 'UPDATE'), ('projection_park_overflow', 'DELETE'),
             ('projection_hold', 'SELECT'), ('projection_file', 'SELECT'), ('new_events', 'SELECT'),
             ('projector_position', 'SELECT'), ('projector_position', 'INSERT'), ('projector_position', 'UPDATE'),
             ('projector_source', 'SELECT'), ('projector_source', 'INSERT')
     ) AS needed (relation, privilege)
WHERE NOT has_table_privilege(needed.relation, needed.privilege)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT projection, account_id, version, last_event_id, last_event_at, updated_at FROM projection_account WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT projection, account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp,
           replays, key, value, headers, parked_at
    FROM projection_parked_event WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT projection, account_id, lowest_version, highest_version, events, expected_version, since, topic, partition, first_offset,
           last_offset, first_version
    FROM projection_park_overflow WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (SELECT message_id, handler, processed_at FROM inbox WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (SELECT handler, until FROM inbox_pruned WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (SELECT projection, sha256, mode, text FROM projection_file WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT account_id, version, event_id, event_type, occurred_at, correlation_id, data, topic, partition, "offset"
    FROM new_events WHERE false)
UNION ALL
SELECT NULL WHERE EXISTS (
    SELECT consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, updated_at, projection,
           leader_epoch, leader_epoch_at, judged_epoch, judged_epoch_at, stopped_reason, stopped_end,
           halted_reason, halted_fence, set_by_hand
    FROM projector_position WHERE false);
