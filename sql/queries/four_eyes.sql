-- Whether a change that one person wants needs another to approve it.
SELECT four_eyes FROM repair_policy;
