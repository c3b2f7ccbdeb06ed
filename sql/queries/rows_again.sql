-- Returns the current state of the rows that a comparison has noted. The first two columns are the
-- key, as text and as a JSON object. For the live row and for the rebuilt row there are two
-- columns: a hash (null if there is no row) and the version of the account.
SELECT ROW ({key_d})::text, json_build_object({key_object_d})::text,
       CASE WHEN {present_l} THEN hashtextextended(ROW ({all_l})::text, 1) END, {version_l},
       CASE WHEN {present_s} THEN hashtextextended(ROW ({all_s})::text, 1) END, {version_s}
FROM projector_rebuild.{noted} AS d
LEFT JOIN {from} AS l ON ({key_l}) = ({key_d})
LEFT JOIN {shadow} AS s ON ({key_s}) = ({key_d})
ORDER BY ROW ({key_d})::text COLLATE "C";
