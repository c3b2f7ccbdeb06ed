-- Returns the file with which a projection was last run. There is no row as long as no record was
-- processed. So a mistake in the file can be corrected after the first start.
SELECT sha256, mode
FROM projection_file
WHERE projection = $1
  AND (EXISTS (SELECT FROM projector_position AS p WHERE p.projection = $1 AND {processed})
       OR EXISTS (SELECT FROM projection_account WHERE projection = $1));
