-- Stores the file of a projection if none is stored. The parameters are name ($1), SHA-256 ($2),
-- mode ($3) and text ($4). A stored file with the same mode is replaced if $5 is true. Any stored
-- file is replaced if no record was processed with it yet (see projection_file_kept.sql). Writers
-- lock their position first, so the positions are locked here too. The result is the file that is
-- stored now. There is no row if another writer has stored a file while this statement ran.
WITH positions AS MATERIALIZED (
    SELECT {processed} AS processed
    FROM projector_position AS p
    WHERE p.projection = $1 AND EXISTS (SELECT FROM projection_file WHERE projection = $1 AND sha256 <> $2)
    ORDER BY p.consumer_group, p.topic, p.partition
    FOR UPDATE
), kept AS (
    INSERT INTO projection_file AS f (projection, sha256, mode, text) VALUES ($1, $2, $3, $4)
    ON CONFLICT (projection) DO UPDATE
        SET sha256 = EXCLUDED.sha256, mode = EXCLUDED.mode, text = EXCLUDED.text, kept_at = now(), kept_by = session_user
        WHERE f.sha256 <> EXCLUDED.sha256
          AND ($5 AND f.mode = EXCLUDED.mode
               OR NOT EXISTS (SELECT FROM positions WHERE processed)
                  AND NOT EXISTS (SELECT FROM projection_account WHERE projection = $1))
    RETURNING sha256, mode
)
SELECT sha256, mode FROM kept
UNION ALL
SELECT sha256, mode FROM projection_file WHERE projection = $1 AND NOT EXISTS (SELECT FROM kept);
