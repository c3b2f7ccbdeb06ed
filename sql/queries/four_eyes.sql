-- Returns whether a change needs the approval of a second person.
SELECT four_eyes FROM repair_policy;
