-- Keeps the file of a projection ($1: name, $2: SHA-256, $3: mode, $4: text) when none is kept,
-- or in the place of another text when that is accepted ($5) and has the same mode. Returns
-- what is kept then; nothing when another writer has kept a file since this began.
WITH kept AS (
    INSERT INTO projection_file AS f (projection, sha256, mode, text) VALUES ($1, $2, $3, $4)
    ON CONFLICT (projection) DO UPDATE
        SET sha256 = EXCLUDED.sha256, text = EXCLUDED.text, kept_at = now(), kept_by = session_user
        WHERE $5 AND f.mode = EXCLUDED.mode AND f.sha256 <> EXCLUDED.sha256
    RETURNING sha256, mode
)
SELECT sha256, mode FROM kept
UNION ALL
SELECT sha256, mode FROM projection_file WHERE projection = $1 AND NOT EXISTS (SELECT FROM kept);
