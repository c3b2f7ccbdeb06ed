-- account_row.sql of a projection of one's own ($1): without money.
SELECT '', '', version, '', coalesce(last_event_id, ''), last_event_at
FROM projection_account
WHERE projection = $1 AND account_id = $2;
