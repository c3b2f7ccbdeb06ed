-- Runs a statement of a projection file ($1). The step $2 is "last" for the last statement, see
-- migration 00025.
SELECT projector_custom($1, $2);
