-- Returns whether this login may decide about requests, as the role projector_approver may.
SELECT has_column_privilege('repair_request', 'state', 'UPDATE');
