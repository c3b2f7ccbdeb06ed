-- Blocks writes to the versions of accounts until a swap has changed them together with the rows. A
-- swap locks positions before this table, and so do consumers.
LOCK TABLE projection_account IN SHARE ROW EXCLUSIVE MODE;
