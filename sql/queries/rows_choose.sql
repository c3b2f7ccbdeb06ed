-- Chooses the rows that can be changed now. Answers how many are replaced, how many removed,
-- and how many are left.
WITH chosen AS (
    UPDATE projector_rebuild.{difference} d
    SET _chosen = true
    WHERE (d._kind <> 'unknown' OR $1) AND {fit}
    RETURNING d._kind
)
SELECT count(*) FILTER (WHERE _kind <> 'unknown'), count(*) FILTER (WHERE _kind = 'unknown'),
       (SELECT count(*) FROM projector_rebuild.{difference} WHERE _kind <> 'unknown' OR $1) - count(*)
FROM chosen;
