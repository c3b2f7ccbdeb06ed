-- The schema of a rebuild, beside the live tables: what every projection needs there. Its
-- tables are not logged: a crash of the server empties them, and the rebuild is repeated.
-- What an earlier one that was killed has left goes first.
DROP SCHEMA IF EXISTS projector_rebuild CASCADE;
CREATE SCHEMA projector_rebuild;
CREATE UNLOGGED TABLE projector_rebuild.projector_position (LIKE projector_position INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.projector_source (LIKE projector_source INCLUDING ALL);
