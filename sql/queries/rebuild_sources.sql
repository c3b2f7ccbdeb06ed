-- Returns the topics, except the topic $2, from which rows of a projection may have come.
SELECT topic FROM projector_position WHERE projection = $1 AND topic <> $2
UNION
SELECT topic FROM projector_source WHERE projection = $1 AND topic <> $2
ORDER BY topic;
