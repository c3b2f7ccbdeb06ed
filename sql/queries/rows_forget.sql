-- Forgets what was noted of a table.
DELETE FROM projector_rebuild.{noted};
