-- Runs a statement of a projection file ($1). The parameter $2 is "last" for the last statement of
-- the file, and "run" for all others. See migration 00025.
SELECT projector_custom($1, $2);
