-- Puts in what was rebuilt, by the way every balance is written.
INSERT INTO account_balance AS t
    (account_id, currency, balance, version, status, last_event_id, last_event_at, updated_at)
SELECT s.account_id, s.currency, s.balance, s.version, s.status, s.last_event_id, s.last_event_at, now()
FROM projector_rebuild.difference d
JOIN projector_rebuild.account_balance s ON s.account_id = d.account_id
WHERE d.swap = $1
ORDER BY s.account_id COLLATE "C"
ON CONFLICT (account_id) DO UPDATE
SET currency      = EXCLUDED.currency,
    balance       = EXCLUDED.balance,
    version       = EXCLUDED.version,
    status        = EXCLUDED.status,
    last_event_id = EXCLUDED.last_event_id,
    last_event_at = EXCLUDED.last_event_at,
    updated_at    = EXCLUDED.updated_at
WHERE t.version < EXCLUDED.version;
