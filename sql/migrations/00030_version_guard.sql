-- The trigger that refuses a lower version runs after the update, no longer before it. PostgreSQL
-- locks each row for a trigger that runs before an update, and writes a log record for the lock.
-- A trigger that runs after the update refuses the same updates without that cost.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
SET LOCAL citus.enable_unsafe_triggers = on; -- the trigger reads only its own row, so it works on a shard
DROP TRIGGER version_never_decreases ON account_balance;
CREATE TRIGGER version_never_decreases
    AFTER UPDATE ON account_balance
    FOR EACH ROW WHEN (NEW.version < OLD.version)
    EXECUTE FUNCTION projector_refuse_lower_version();
DROP TRIGGER version_never_decreases ON projection_account;
CREATE TRIGGER version_never_decreases
    AFTER UPDATE ON projection_account
    FOR EACH ROW WHEN (NEW.version < OLD.version)
    EXECUTE FUNCTION projector_refuse_lower_version();
