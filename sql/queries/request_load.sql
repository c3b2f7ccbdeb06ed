-- Returns what is needed to compute the plan of a request again, and the current user.
SELECT arguments, file_flags, file_names, file_contents, plan_sha256, session_user::text
FROM repair_request
WHERE id = $1;
