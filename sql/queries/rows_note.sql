-- Notes rows that differ.
INSERT INTO projector_rebuild.{noted}
SELECT * FROM jsonb_populate_recordset(NULL::projector_rebuild.{noted}, $1::jsonb);
