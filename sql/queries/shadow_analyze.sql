-- Tells PostgreSQL what the tables of a rebuild hold now.
SELECT projector_rebuild_analyze();
