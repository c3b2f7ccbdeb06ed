INSERT INTO bench_own (account_id, events, cents)
SELECT account_id, count(*), coalesce(sum((data->>'amount')::numeric * 100), 0)
FROM new_events
GROUP BY account_id
ORDER BY account_id
ON CONFLICT (account_id) DO UPDATE
    SET events = bench_own.events + EXCLUDED.events, cents = bench_own.cents + EXCLUDED.cents;
