-- Returns the number of the last row of the audit trail.
SELECT coalesce(max(chain), 0) FROM dlq_action;
