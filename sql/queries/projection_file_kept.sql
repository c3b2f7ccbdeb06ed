-- The file that a projection was last run from.
SELECT sha256, mode FROM projection_file WHERE projection = $1;
