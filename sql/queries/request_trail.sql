-- Returns how many rows of the audit trail belong to a request.
SELECT count(*) FROM dlq_action WHERE request_id = $1;
