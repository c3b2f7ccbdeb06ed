-- Waits for other transactions that insert the first position of a consumer group, if the group of
-- group_name.sql has no position yet. Without this lock, two projections could start in the same group
-- at the same time, and neither would see the positions of the other. An advisory lock is not safe for
-- this, because any login that may connect may hold it. This lock needs a right to change the table. It
-- does not conflict with those that change rows.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM projector_position WHERE consumer_group = current_setting('projector.group')) THEN
        LOCK TABLE projector_position IN SHARE UPDATE EXCLUSIVE MODE;
    END IF;
END $$;
