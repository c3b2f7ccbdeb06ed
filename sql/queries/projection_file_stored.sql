-- Returns whether a file with this SHA-256 is stored for any projection.
SELECT EXISTS (SELECT FROM projection_file WHERE sha256 = $1);
