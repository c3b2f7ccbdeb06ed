-- Deletes the keys of differing rows that were noted for a table.
DELETE FROM projector_rebuild.{noted};
