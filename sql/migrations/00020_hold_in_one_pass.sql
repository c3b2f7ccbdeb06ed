-- The view account_hold now joins account_balance only one time instead of three times. With Citus,
-- each shard computes the view for its own accounts. Before this migration, the coordinator fetched
-- all balances.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
CREATE OR REPLACE VIEW account_hold AS
SELECT w.account_id,
       coalesce(w.version + 1, w.expected_version) AS expected_version,
       w.received_version,
       coalesce(h.class, 'version_gap')            AS class,
       w.waiting_events,
       w.since,
       w.overflowed_events
FROM (
    SELECT known.account_id,
           b.version,
           min(known.expected_version)   AS expected_version,
           min(known.lowest_version)     AS received_version,
           sum(known.parked)::bigint     AS waiting_events,
           min(known.since)              AS since,
           sum(known.overflowed)::bigint AS overflowed_events
    FROM (
        SELECT account_id, expected_version, version AS lowest_version, version AS highest_version,
               1 AS parked, parked_at AS since, 0 AS overflowed
        FROM parked_event
        UNION ALL
        SELECT account_id, expected_version, lowest_version, highest_version, events, since, events
        FROM park_overflow
    ) AS known
    LEFT JOIN account_balance b ON b.account_id = known.account_id
    WHERE known.highest_version > coalesce(b.version, known.highest_version - 1)
    GROUP BY known.account_id, b.version
) AS w
LEFT JOIN parked_event h ON h.account_id = w.account_id
                        AND h.version = coalesce(w.version + 1, w.expected_version);
