-- Turns the four-eyes policy on or off. Only the owner of the tables may run it.
UPDATE repair_policy SET four_eyes = $1;
