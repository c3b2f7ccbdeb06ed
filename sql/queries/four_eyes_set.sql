-- Sets whether a change needs two people, as the owner.
UPDATE repair_policy SET four_eyes = $1;
