-- What a swap would write, as a hash.
SELECT encode(sha256(convert_to(coalesce(string_agg(
           ROW (d.account_id, d.kind, d.version, s.version, s.currency, s.balance, s.status, s.last_event_id, s.last_event_at)::text, ',' ORDER BY d.account_id COLLATE "C"), ''), 'UTF8')), 'hex')
FROM projector_rebuild.difference d
LEFT JOIN projector_rebuild.account_balance s ON s.account_id = d.account_id
WHERE d.kind <> 'unknown' OR $1;
