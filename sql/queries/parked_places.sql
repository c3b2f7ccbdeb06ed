-- Returns the given events that are parked. An event is identified by account, version, topic,
-- partition and offset.
SELECT p.account_id, p.version, p.topic, p.partition, p."offset"
FROM {parked} p
JOIN unnest($1::text[], $2::int8[], $3::text[], $4::int4[], $5::int8[]) AS d (account_id, version, topic, partition, place)
  ON {of_p}p.account_id = d.account_id AND p.version = d.version
 AND p.topic = d.topic AND p.partition = d.partition AND p."offset" = d.place;
