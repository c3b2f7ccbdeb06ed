-- Decides about a request. A trigger refuses a second decision.
UPDATE repair_request SET state = $2, decision_reason = $3 WHERE id = $1;
