-- Puts in the rebuilt rows that are missing.
INSERT INTO {table} ({written})
SELECT {written_s}
FROM projector_rebuild.{difference} d
JOIN projector_rebuild.{table} s ON ({key_s}) = ({key_d})
WHERE d._chosen AND d._kind = 'missing'
ORDER BY {key_order}
ON CONFLICT ({key}) DO NOTHING;
