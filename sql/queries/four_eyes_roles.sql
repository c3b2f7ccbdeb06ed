-- Returns whether the operators role exists. With the four-eyes policy, this role has no right to
-- write.
SELECT to_regrole('projector_operator') IS NOT NULL;
