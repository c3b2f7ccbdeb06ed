-- projection: event_count
-- mode: once
-- types: AccountOpened, FundsCredited, FundsDebited, AccountClosed
-- tables: event_count
--
-- This projection counts the events of each account. A count does not depend on the order of
-- events, so no event waits for a gap.
INSERT INTO event_count (account_id, events, last_at)
SELECT account_id, count(*), max(occurred_at)
FROM new_events
GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE
    SET events = event_count.events + EXCLUDED.events, last_at = greatest(event_count.last_at, EXCLUDED.last_at);
