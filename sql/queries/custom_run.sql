-- Runs a statement of a projection's file ($1), or its last one ($2 is "last"), see migration 00025.
SELECT projector_custom($1, $2);
