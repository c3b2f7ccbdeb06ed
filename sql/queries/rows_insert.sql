-- Inserts into the live table the rebuilt rows that it does not have. Another session may insert such a
-- row first. A conflict with another constraint is an error.
INSERT INTO {table} ({written})
SELECT {written_s}
FROM projector_rebuild.{noted} AS d
JOIN {shadow} AS s ON ({key_s}) = ({key_d})
WHERE d._kind = 'missing'
ORDER BY {key_order}
ON CONFLICT ({key}) DO NOTHING;
