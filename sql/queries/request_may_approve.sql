-- Returns whether the current login may decide about requests. The role projector_approver has this
-- privilege.
SELECT has_column_privilege('repair_request', 'state', 'UPDATE');
