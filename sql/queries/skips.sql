-- Returns versions that a person has skipped. It also returns the partition and offset of the
-- skipped event if they were known. Skips that were reversed are left out. In the audit trail, a
-- skip has the result $1. The query rebuild_skips returns all of them, and skip_last returns the
-- last one of account $2.
SELECT s.account_id, s.version, s.altered, coalesce(s.topic, ''), coalesce(s.partition, 0), coalesce(s."offset", 0)
{last}     , coalesce(s.previous_event_id, ''), coalesce(s.class, '')
FROM dlq_action s
WHERE s.action = 'skip' AND s.result = $1 AND s.account_id IS NOT NULL AND s.version IS NOT NULL
{last}  AND s.account_id = $2
  AND NOT EXISTS (SELECT FROM dlq_action u
                  WHERE u.action = 'unskip' AND u.result = 'un' || $1 AND u.id > s.id
                    AND u.account_id = s.account_id AND u.version = s.version)
{all}ORDER BY s.account_id, s.version, s.id
{last}ORDER BY s.id DESC LIMIT 1
;
