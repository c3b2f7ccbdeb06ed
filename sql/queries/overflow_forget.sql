-- Nothing is beyond the park limit of an account any more.
DELETE FROM park_overflow WHERE account_id = $1;
