-- Keeps everybody from writing how far accounts are, until a swap has changed it together with
-- their rows. Consumers lock their position first, as it does.
LOCK TABLE projection_account IN SHARE ROW EXCLUSIVE MODE;
