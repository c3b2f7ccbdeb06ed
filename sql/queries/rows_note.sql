-- Notes rows that differ.
INSERT INTO projector_rebuild.{difference}
SELECT * FROM jsonb_populate_recordset(NULL::projector_rebuild.{difference}, $1::jsonb);
