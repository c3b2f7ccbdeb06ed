-- Lets PostgreSQL plan a statement of a projection file under the role and the search path with
-- which the statement runs.
SELECT projector_custom($1, 'plan');
