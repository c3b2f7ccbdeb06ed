-- Returns the number of the last row in the chain of the audit trail. A rebuild remembers it to
-- find later changes.
SELECT coalesce(max(chain), 0) FROM dlq_action;
