-- Returns the whole audit trail in the order of its hash chain. The hash of a row is computed from
-- these texts of its columns. Rows that have no place in the chain come last.
SELECT id, chain, hash,
       ARRAY[id::text, action, account_id, version::text, topic, partition::text, "offset"::text,
             dlq_topic, dlq_partition::text, dlq_offset::text, class, actor, db_user, reason, result,
             altered::text, value_sha256, original_sha256, approved_by, approval_reason,
             to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')]
       || CASE WHEN num_nonnulls(consumer_group, projection, request_id, requested_by) > 0
               THEN ARRAY[consumer_group, projection, request_id::text, requested_by] ELSE '{}'::text[] END
       || CASE WHEN previous_event_id IS NOT NULL THEN ARRAY[previous_event_id] ELSE '{}'::text[] END
FROM dlq_action
ORDER BY chain NULLS LAST, id;
