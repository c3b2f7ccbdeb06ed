-- The file that a projection was last run from. No row if no record was processed yet, so that a
-- mistake found at the first start can be corrected.
SELECT sha256, mode
FROM projection_file
WHERE projection = $1
  AND (EXISTS (SELECT FROM projector_position WHERE projection = $1 AND greatest(next_offset, judged_until) > 0)
       OR EXISTS (SELECT FROM projection_account WHERE projection = $1));
