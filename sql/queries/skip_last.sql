-- Returns the last skip of an account that was not reversed. In the audit trail, a skip has the
-- result $2.
SELECT s.version, coalesce(s.previous_event_id, ''), coalesce(s.class, ''),
       coalesce(s.topic, ''), coalesce(s.partition, 0), coalesce(s."offset", 0)
FROM dlq_action s
WHERE s.action = 'skip' AND s.result = $2 AND s.account_id = $1 AND s.version IS NOT NULL
  AND NOT EXISTS (SELECT FROM dlq_action u
                  WHERE u.action = 'unskip' AND u.result = 'un' || $2 AND u.id > s.id
                    AND u.account_id = s.account_id AND u.version = s.version)
ORDER BY s.id DESC
LIMIT 1;
