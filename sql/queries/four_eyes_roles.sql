-- Whether there is a role of operators, from whom the policy takes the right to write.
SELECT to_regrole('projector_operator') IS NOT NULL;
