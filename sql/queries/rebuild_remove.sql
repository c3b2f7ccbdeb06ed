-- Takes out the rows that are wrong: those the topic knows nothing of, if they are as
-- they were compared, and those that differ from what was rebuilt and are not beyond it.
DELETE FROM account_balance b
USING projector_rebuild.difference d
LEFT JOIN projector_rebuild.account_balance s ON s.account_id = d.account_id
WHERE b.account_id = d.account_id
  AND CASE WHEN d.kind = 'unknown' THEN
               b.version = d.version AND s.account_id IS NULL
               AND NOT EXISTS (SELECT FROM projector_rebuild.parked_event p WHERE p.account_id = d.account_id)
           ELSE s.version >= b.version
               AND (s.version, s.currency, s.balance::text, s.status, s.last_event_id, s.last_event_at)
                   IS DISTINCT FROM (b.version, b.currency, b.balance::text, b.status, b.last_event_id, b.last_event_at)
      END;
