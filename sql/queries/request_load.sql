-- Returns what is needed to compute the plan of a request again, and the current user.
-- An operator can insert a null in an array by hand, and the program does not read nulls.
SELECT array_replace(arguments, NULL, ''), array_replace(file_flags, NULL, ''), array_replace(file_names, NULL, ''), file_contents, plan_sha256, session_user::text
FROM repair_request
WHERE id = $1;
