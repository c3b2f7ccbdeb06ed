-- Returns whether an account starts from an opening at a version ($2) or later.
SELECT EXISTS (SELECT FROM account_opening WHERE account_id = $1 AND version >= $2);
