-- Chooses the accounts that can be replaced or, if that is wanted, removed now: those of
-- which the live tables have seen no event that the rebuilt ones lack. Such an event has
-- left a version beyond the rebuilt one, or it is parked, or the rival of one that is, or it was
-- counted beyond the park limit. Answers how many are replaced, how many removed, and how many are left.
--
-- An account that people have repaired, or opened, since the rebuild began is left alone.
WITH repaired AS MATERIALIZED (
    SELECT DISTINCT a.account_id
    FROM dlq_action a
    WHERE (a.action = 'skip' AND a.result = 'skipped' OR a.action = 'unskip' AND a.result = 'unskipped'
           OR a.action = 'replay' AND a.result = 'applied' AND (a.altered OR a.class IS DISTINCT FROM 'version_gap'))
      AND NOT EXISTS (SELECT FROM projector_rebuild.known_action k WHERE k.id = a.id)
), wanted AS MATERIALIZED (
    SELECT d.account_id, d.kind, d.version, d.overflowed, s.version AS rebuilt
    FROM projector_rebuild.difference d
    LEFT JOIN projector_rebuild.account_balance s ON s.account_id = d.account_id
    WHERE d.swap IS NULL AND (d.kind <> 'unknown' OR $3)
), fit AS MATERIALIZED (
    SELECT w.account_id, w.rebuilt
    FROM wanted w
    LEFT JOIN account_balance b ON b.account_id = w.account_id
    LEFT JOIN park_overflow o ON o.account_id = w.account_id
    WHERE CASE WHEN w.kind = 'unknown'
               THEN w.rebuilt IS NULL AND b.version IS NOT DISTINCT FROM w.version
                    AND NOT EXISTS (SELECT FROM projector_rebuild.parked_event p WHERE p.account_id = w.account_id)
               ELSE b.version IS NULL OR b.version <= w.rebuilt END
      AND o.events IS NOT DISTINCT FROM w.overflowed
      AND NOT EXISTS (SELECT FROM repaired r WHERE r.account_id = w.account_id)
      AND NOT EXISTS (
          SELECT FROM account_opening a
          LEFT JOIN projector_rebuild.account_opening k ON k.account_id = a.account_id
          WHERE a.account_id = w.account_id AND a.version IS DISTINCT FROM k.version)
      AND NOT EXISTS (
          SELECT FROM parked_event p
          CROSS JOIN LATERAL (VALUES (p.partition, p."offset"), (p.rival_partition, p.rival_offset)) AS seen (partition, "offset")
          LEFT JOIN unnest($5::int4[], $6::int8[]) AS l (partition, next_offset) ON l.partition = seen.partition
          LEFT JOIN projector_rebuild.projector_position r ON r.topic = p.topic AND r.partition = seen.partition
          WHERE p.account_id = w.account_id AND (w.rebuilt IS NULL OR p.version > w.rebuilt)
            -- With --partial the balances may come from other topics as well.
            AND CASE WHEN p.topic = $1 THEN seen."offset" >= coalesce(r.next_offset, 0) AND seen."offset" < l.next_offset ELSE $4 END)
), chosen AS (
    UPDATE projector_rebuild.difference d
    SET swap = $2, rebuilt = f.rebuilt
    FROM fit f
    WHERE d.account_id = f.account_id
    RETURNING d.kind
)
SELECT count(*) FILTER (WHERE kind <> 'unknown'), count(*) FILTER (WHERE kind = 'unknown'),
       (SELECT count(*) FROM wanted) - count(*)
FROM chosen;
