-- Runs or plans a statement of a projection file ($1) under the role and the search path of such
-- statements. The parameter $2 is "plan", "last" for the last statement of the file, or "run" for
-- all others. See migration 00025.
SELECT projector_custom($1, $2);
