-- Deletes the noted rows of a table.
DELETE FROM projector_rebuild.{noted};
