-- Notes how many events of these accounts wait beyond the park limit. It is asked before it
-- is known how far the rebuilt tables have to be brought: what is counted here they have.
UPDATE projector_rebuild.difference d
SET overflowed = o.events
FROM projector_rebuild.difference x
LEFT JOIN park_overflow o ON o.account_id = x.account_id
WHERE x.account_id = d.account_id AND d.swap IS NULL AND d.overflowed IS DISTINCT FROM o.events;
