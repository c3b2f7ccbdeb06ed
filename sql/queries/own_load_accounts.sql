-- load_accounts.sql of a projection of one's own ($1): without money.
SELECT account_id, '', 0::numeric, version, false, coalesce(last_event_id, ''), last_event_at
FROM projection_account
WHERE projection = $1 AND account_id = ANY ($2::text[]);
