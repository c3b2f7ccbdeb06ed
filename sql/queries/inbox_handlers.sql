-- Returns the handlers that have markers. The query jumps in the index from one handler to the
-- next.
WITH RECURSIVE h (handler) AS (
    SELECT min(handler) FROM inbox
    UNION ALL
    SELECT (SELECT min(i.handler) FROM inbox i WHERE i.handler > h.handler) FROM h WHERE h.handler IS NOT NULL
)
SELECT handler FROM h WHERE handler IS NOT NULL;
