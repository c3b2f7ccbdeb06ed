-- The repairs that are done again. What people do from now on is not.
INSERT INTO projector_rebuild.known_action SELECT id FROM dlq_action WHERE action IN ('skip', 'unskip', 'replay');
