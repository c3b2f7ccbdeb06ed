-- Lets PostgreSQL plan a statement of a projection file under the same role and search path as when
-- it runs.
SELECT projector_custom($1, 'plan');
