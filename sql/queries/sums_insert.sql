-- Puts in the sums that are missing, or adds them to what consumers have put in since.
INSERT INTO {table} AS t ({key}, {sums})
SELECT {key_d}, {sums_rebuilt}
FROM projector_rebuild.{difference} d
WHERE d._chosen AND d._kind = 'missing'
ORDER BY {key_order}
ON CONFLICT ({key}) DO UPDATE SET {set_added};
