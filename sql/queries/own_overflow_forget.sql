-- overflow_forget.sql of a custom projection ($1).
DELETE FROM projection_park_overflow WHERE projection = $1 AND account_id = $2;
