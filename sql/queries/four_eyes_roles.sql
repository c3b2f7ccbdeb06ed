-- Returns whether the operators role exists. With the four-eyes policy, this role may add requests,
-- but may not write the read model.
SELECT to_regrole('projector_operator') IS NOT NULL;
