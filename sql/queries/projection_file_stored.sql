-- Returns whether the rows of a projection come from a file with this SHA-256.
SELECT EXISTS (SELECT FROM projection_file WHERE sha256 = $1);
