-- The view of people's decisions also has their time. A record that is later than the discard of an
-- unreadable record at the same offset is another record. So it must not be taken for the discarded
-- one.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
CREATE OR REPLACE VIEW projector_decision AS
SELECT chain, action, result, projection, account_id, version, topic, partition, "offset", at
FROM dlq_action
WHERE action IN ('discard', 'skip', 'unskip', 'replay');
