-- What the database knows of the given accounts: state and parked events. Accounts
-- of which it knows nothing do not appear.
SELECT k.account_id,
       b.account_id IS NOT NULL,
       coalesce(b.currency, ''), b.balance, coalesce(b.version, 0), coalesce(b.status = 'closed', false),
       coalesce(b.last_event_id, ''), b.last_event_at,
       coalesce(h.events, 0), coalesce(h.next_version, 0), coalesce(n.class, ''),
       o.account_id IS NOT NULL
FROM unnest($1::text[]) AS k (account_id)
LEFT JOIN account_balance b ON b.account_id = k.account_id
LEFT JOIN LATERAL (
    SELECT count(*) AS events, min(p.version) AS next_version
    FROM parked_event p
    WHERE p.account_id = k.account_id AND (b.version IS NULL OR p.version > b.version)
) h ON true
LEFT JOIN parked_event n ON n.account_id = k.account_id AND n.version = h.next_version
LEFT JOIN park_overflow o ON o.account_id = k.account_id
WHERE b.account_id IS NOT NULL OR h.events > 0 OR o.account_id IS NOT NULL;
