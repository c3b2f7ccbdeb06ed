-- Turns the four-eyes policy on or off. The owner of the tables runs it.
UPDATE repair_policy SET four_eyes = $1;
