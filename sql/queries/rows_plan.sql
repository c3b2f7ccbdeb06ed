-- Returns a hash over all rows that a swap would write or delete. Rows without an event in the
-- topic count only if $1 is true.
SELECT encode(sha256(convert_to(coalesce(string_agg(ROW (d._kind, {key_d}, {all_s})::text, ',' ORDER BY ROW ({key_d})::text COLLATE "C"), ''), 'UTF8')), 'hex')
FROM projector_rebuild.{noted} AS d
LEFT JOIN {shadow} AS s ON ({key_s}) = ({key_d})
WHERE d._kind <> 'unknown' OR $1;
