-- Inserts the rebuilt rows of accounts ($1).
INSERT INTO {table} ({written})
SELECT {written_s} FROM {shadow} AS s WHERE s.account_id = ANY ($1::text[])
ORDER BY s.account_id COLLATE "C"
ON CONFLICT DO NOTHING;
