-- Takes out the rows that are wrong: those the topic knows nothing of, and those that are
-- not what was rebuilt.
DELETE FROM account_balance b
USING projector_rebuild.difference d
LEFT JOIN projector_rebuild.account_balance s ON s.account_id = d.account_id
WHERE d.swap = $1 AND b.account_id = d.account_id
  AND (s.version, s.currency, s.balance::text, s.status, s.last_event_id, s.last_event_at)
      IS DISTINCT FROM (b.version, b.currency, b.balance::text, b.status, b.last_event_id, b.last_event_at);
