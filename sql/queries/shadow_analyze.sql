-- Collects statistics about the tables of a rebuild.
SELECT projector_rebuild_analyze();
