-- overflow.sql of a projection of one's own ($1).
INSERT INTO projection_park_overflow AS o (projection, account_id, lowest_version, highest_version, events, expected_version)
SELECT $1::text, v.account_id, min(v.version), max(v.version), count(*), min(v.expected_version)
FROM unnest($2::text[], $3::int8[], $4::int8[]) AS v (account_id, version, expected_version)
WHERE NOT EXISTS (SELECT FROM projection_parked_event p
                  WHERE p.projection = $1 AND p.account_id = v.account_id AND p.version = v.version)
GROUP BY v.account_id
ORDER BY v.account_id
ON CONFLICT (projection, account_id) DO UPDATE
SET lowest_version  = least(o.lowest_version, EXCLUDED.lowest_version),
    highest_version = greatest(o.highest_version, EXCLUDED.highest_version),
    events          = o.events + EXCLUDED.events;
