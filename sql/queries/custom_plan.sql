-- Has PostgreSQL plan a statement of a projection's file, where it would run.
SELECT projector_custom($1, 'plan');
