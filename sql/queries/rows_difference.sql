-- What is to be changed in a table: the key; what the live row was, as a number; its sums
-- and the rebuilt ones.
CREATE UNLOGGED TABLE projector_rebuild.{difference} AS
SELECT {key}, ''::text AS _kind, 0::bigint AS _digest, NULL::jsonb AS _was, NULL::jsonb AS _becomes, false AS _chosen
FROM {from} AS t WITH NO DATA;
