-- Whether this login may decide about requests, as projector_approver may.
SELECT has_column_privilege('repair_request', 'state', 'UPDATE');
