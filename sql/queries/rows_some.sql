-- Returns the rows of some groups of keys (see rows_digest.sql), sorted by the bytes of the key. $1
-- has a bit for each group. A list of the groups would be searched for each row, because a generic
-- plan has no hash table for it. The columns are the key as text, the key as a JSON object, the hash
-- of the row, and for an account its version and what waits for it.
SELECT ROW ({key})::text AS id, json_build_object({key_object})::text, hashtextextended(ROW ({all})::text, 1), {version_t}, {hold_t}
FROM {some} AS t
WHERE {chosen_t}
ORDER BY ROW ({key})::text COLLATE "C";
