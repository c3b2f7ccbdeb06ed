-- Has all positions of a projection ($1) say which mapping ($2) records are read by.
UPDATE projector_position SET mapping = $2 WHERE projection = $1 AND mapping IS DISTINCT FROM $2;
