-- Returns the rows of some groups of keys (see rows_digest.sql), sorted by the bytes of the key.
-- The columns are the key as text, the key as a JSON object, the hash of the row, and for an account
-- its version and what waits for it.
SELECT ROW ({key})::text AS id, json_build_object({key_object})::text, hashtextextended(ROW ({all})::text, 1), {version_t}, {hold_t}
FROM {from} AS t
WHERE hashtextextended(ROW ({key})::text, 0) & 65535 = ANY ($1::int8[])
ORDER BY ROW ({key})::text COLLATE "C";
