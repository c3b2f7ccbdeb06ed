-- Returns the file that a projection was last run from. There is no row while no record was
-- processed, so that a mistake in the file can be corrected after the first start.
SELECT sha256, mode
FROM projection_file
WHERE projection = $1
  AND (EXISTS (SELECT FROM projector_position WHERE projection = $1 AND greatest(next_offset, judged_until) > 0)
       OR EXISTS (SELECT FROM projection_account WHERE projection = $1));
