-- Returns the last version of an account ($2) that a person has skipped and that is still skipped.
-- It also returns the partition and offset of the skipped event if they were known. In the audit
-- trail, a skip has the result $1.
SELECT s.version, coalesce(s.topic, ''), coalesce(s.partition, 0), coalesce(s."offset", 0),
       coalesce(s.previous_event_id, ''), coalesce(s.class, '')
FROM dlq_action s
WHERE s.action = 'skip' AND s.result = $1 AND s.version IS NOT NULL AND s.account_id = $2
  AND NOT EXISTS (SELECT FROM dlq_action u
                  WHERE u.action = 'unskip' AND u.result = 'un' || $1 AND u.id > s.id
                    AND u.account_id = s.account_id AND u.version = s.version)
ORDER BY s.id DESC LIMIT 1;
