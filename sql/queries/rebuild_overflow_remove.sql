DELETE FROM park_overflow o USING projector_rebuild.settled d WHERE o.account_id = d.account_id;
