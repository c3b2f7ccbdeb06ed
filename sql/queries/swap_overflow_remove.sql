DELETE FROM park_overflow o USING projector_rebuild.difference d WHERE d.swap = $1 AND o.account_id = d.account_id;
