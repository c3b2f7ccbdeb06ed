-- Every account with all that is projected of it, in the order of bytes: once for the
-- live tables and once for the rebuilt ones, by the search path. What waits beyond the
-- park limit is told only as being there.
SELECT account_id,
       b.version IS NOT NULL,
       coalesce(b.version, 0),
       ROW (b.currency, b.balance::text, b.status, b.last_event_id, b.last_event_at)::text,
       CASE WHEN o.account_id IS NOT NULL OR p.events > $1 OR $2 > 0 AND p.bytes > $2 THEN 'beyond the park limit'
            WHEN p.events > 0 THEN p.events || ' ' || p.digest
            ELSE '' END
FROM (SELECT account_id, version, currency, balance, status, last_event_id, last_event_at FROM account_balance) AS b
FULL JOIN (
    SELECT e.account_id, count(*) AS events,
           sum(coalesce(octet_length(e.key), 0) + coalesce(octet_length(e.value), 0) + pg_column_size(e.headers) - 13) AS bytes,
           sum(hashtextextended(ROW (e.version, e.class, e.event_id, e.topic, e.partition, e."offset")::text, 0)::numeric) AS digest
    FROM parked_event e
    LEFT JOIN account_balance b ON b.account_id = e.account_id
    WHERE b.version IS NULL OR e.version > b.version
    GROUP BY e.account_id
) AS p USING (account_id)
FULL JOIN (
    SELECT w.account_id
    FROM park_overflow w
    LEFT JOIN account_balance b ON b.account_id = w.account_id
    WHERE b.version IS NULL OR w.highest_version > b.version
) AS o USING (account_id)
ORDER BY account_id COLLATE "C";
