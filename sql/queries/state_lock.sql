-- Blocks writes to the versions of accounts, because a swap has to change them together with the
-- rows. A swap locks the positions before it locks this table. Consumers use the same order.
LOCK TABLE projection_account IN SHARE ROW EXCLUSIVE MODE;
