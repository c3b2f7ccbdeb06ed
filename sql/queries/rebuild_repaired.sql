-- Returns the accounts that were changed by people, or by events from the outbox, in a projection
-- ($1) after a row of the audit trail ($2). The text is empty for an action without an account. The
-- rebuilt tables do not contain these changes. Rows get their number (chain) at COMMIT, one
-- transaction after the other, so later changes have higher numbers.
SELECT DISTINCT coalesce(a.account_id, '')
FROM dlq_action AS a
WHERE a.chain > $2 AND a.action IN ('replay', 'discard', 'skip', 'unskip', 'fetch', 'open') AND coalesce(a.projection, $1) = $1;
