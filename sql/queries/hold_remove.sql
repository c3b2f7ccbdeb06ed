-- Deletes parked events of accounts ($1) that are not in the rebuilt table with the same class,
-- topic, partition and offset.
WITH kept AS (
    SELECT * FROM {kept} AS k WHERE k.fits AND k.account_id = ANY ($1::text[])
)
DELETE FROM {parked} AS t
WHERE {of_t}t.account_id = ANY ($1::text[])
  AND NOT EXISTS (
      SELECT FROM kept AS k
      WHERE k.account_id = t.account_id AND k.version = t.version AND k.class = t.class
        AND k.topic = t.topic AND k.partition = t.partition AND k."offset" = t."offset");
