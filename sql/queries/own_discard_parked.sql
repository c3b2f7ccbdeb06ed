-- discard_parked.sql of a custom projection ($1).
DELETE FROM projection_parked_event p
USING unnest($2::text[], $3::int8[], $4::text[], $5::int4[], $6::int8[]) AS d (account_id, version, topic, partition, place)
WHERE p.projection = $1 AND p.account_id = d.account_id AND p.version = d.version
  AND p.topic = d.topic AND p.partition = d.partition AND p."offset" = d.place
RETURNING p.topic, p.partition, p."offset";
