-- projection: fraud_per_hour
-- mode: once
-- types: CardDeclined, LoginFailed, PinWrong
-- tables: fraud_hour
--
-- This projection counts possible fraud for each hour. All partitions add to the same rows. With
-- ORDER BY, all partitions lock these rows in the same order, so they do not deadlock.
INSERT INTO fraud_hour (hour, event_type, events, amount)
SELECT date_trunc('hour', occurred_at, 'UTC'), event_type, count(*), coalesce(sum((data->>'amount')::numeric), 0)
FROM new_events
GROUP BY 1, 2
ORDER BY 1, 2
ON CONFLICT (hour, event_type) DO UPDATE
    SET events = fraud_hour.events + EXCLUDED.events, amount = fraud_hour.amount + EXCLUDED.amount;
