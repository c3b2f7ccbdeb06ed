-- What a swap would write, as a hash: rows as they were rebuilt, or what sums are wrong by.
SELECT encode(sha256(convert_to(coalesce(string_agg(ROW (d._kind, {key_d}, {change})::text, ',' ORDER BY {key_order}), ''), 'UTF8')), 'hex')
FROM projector_rebuild.{difference} d
LEFT JOIN projector_rebuild.{table} s ON ({key_s}) = ({key_d})
WHERE d._kind <> 'unknown' OR $1;
