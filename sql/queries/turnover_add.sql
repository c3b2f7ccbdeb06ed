-- Adds to the turnover of days, sorted by key so that concurrent writers cannot deadlock. The sums
-- are parameters in minor units as decimal text, because they may exceed 64 bits.
INSERT INTO daily_turnover AS t (day, currency, credited, debited, events)
SELECT r.day, r.currency, r.credited * u.unit, r.debited * u.unit, r.events
FROM unnest($1::date[], $2::text[], $3::int2[], $4::numeric[], $5::numeric[], $6::int8[])
    AS r (day, currency, digits, credited, debited, events)
CROSS JOIN LATERAL (SELECT (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1] AS unit) AS u
ON CONFLICT (day, currency) DO UPDATE
SET credited = t.credited + EXCLUDED.credited,
    debited  = t.debited + EXCLUDED.debited,
    events   = t.events + EXCLUDED.events;
