-- overflow_shrink.sql of a custom projection ($1).
UPDATE projection_park_overflow SET lowest_version = $3, highest_version = $4, events = $5 WHERE projection = $1 AND account_id = $2;
