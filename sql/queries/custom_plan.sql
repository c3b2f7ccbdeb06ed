-- Lets PostgreSQL plan a statement of a projection file in the place where it would run.
SELECT projector_custom($1, 'plan');
