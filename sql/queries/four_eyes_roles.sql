-- Whether the operators' role exists. The four-eyes policy revokes its right to write.
SELECT to_regrole('projector_operator') IS NOT NULL;
