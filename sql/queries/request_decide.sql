-- Decides about a request, once.
UPDATE repair_request SET state = $2, decision_reason = $3 WHERE id = $1;
