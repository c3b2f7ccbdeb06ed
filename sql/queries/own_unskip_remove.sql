-- unskip_remove.sql of a custom projection ($1).
DELETE FROM projection_account WHERE projection = $1 AND account_id = $2 AND version = $3;
