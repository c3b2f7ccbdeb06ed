-- The topics that a projection's rows have come from. Brokers without topic ids leave no row in
-- projector_source; then the positions say it.
SELECT topic FROM projector_source WHERE projection = $1
UNION
SELECT topic FROM projector_position
WHERE projection = $1 AND topic_id = ANY ($2::text[]) AND greatest(next_offset, judged_until) > 0
ORDER BY topic;
