-- Returns the current state of the rows that a comparison has noted. The first two columns are the
-- key, as text and as a JSON object. For the live row and for the rebuilt row there are three
-- columns: a hash (null if there is no row), the version of the account and what waits for it.
SELECT ROW ({key_d})::text, json_build_object({key_object_d})::text,
       CASE WHEN {present_l} THEN hashtextextended(ROW ({all_l})::text, 1) END, {version_l}, {hold_l},
       CASE WHEN {present_s} THEN hashtextextended(ROW ({all_s})::text, 1) END, {version_s}, {hold_s}
FROM projector_rebuild.{noted} AS d
LEFT JOIN {again_l} AS l ON ({key_l}) = ({key_d})
LEFT JOIN {again_s} AS s ON ({key_s}) = ({key_d})
ORDER BY ROW ({key_d})::text COLLATE "C";
