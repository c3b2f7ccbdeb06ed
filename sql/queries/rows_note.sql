-- Stores the keys of rows that differ between the live table and the rebuilt table.
INSERT INTO projector_rebuild.{noted}
SELECT * FROM jsonb_populate_recordset(NULL::projector_rebuild.{noted}, $1::jsonb);
