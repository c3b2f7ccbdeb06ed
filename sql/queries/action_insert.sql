-- Adds a row to the audit trail for each of the given actions. An empty text means that the value
-- is unknown. If the topic is empty, the partition and the offset are unknown too.
INSERT INTO dlq_action
    (action, account_id, version, topic, partition, "offset", dlq_topic, dlq_partition, dlq_offset, class, actor, reason, result,
     altered, value_sha256, original_sha256, consumer_group, projection, previous_event_id)
SELECT a.action, nullif(a.account_id, ''), a.version, nullif(a.topic, ''),
       CASE WHEN a.topic <> '' THEN a.partition END, CASE WHEN a.topic <> '' THEN a."offset" END,
       nullif(a.dlq_topic, ''),
       CASE WHEN a.dlq_topic <> '' THEN a.dlq_partition END, CASE WHEN a.dlq_topic <> '' THEN a.dlq_offset END,
       nullif(a.class, ''), a.actor, nullif(a.reason, ''), a.result,
       a.altered, nullif(a.value_sha256, ''), nullif(a.original_sha256, ''), nullif(a.consumer_group, ''), nullif(a.projection, ''),
       nullif(a.previous_event_id, '')
FROM ROWS FROM (json_to_recordset($1::json) AS
    (action text, account_id text, version int8, topic text, partition int4, "offset" int8, dlq_topic text, dlq_partition int4, dlq_offset int8,
     class text, actor text, reason text, result text, altered bool, value_sha256 text, original_sha256 text, consumer_group text,
     projection text, previous_event_id text)) WITH ORDINALITY AS a
ORDER BY a.ordinality;
