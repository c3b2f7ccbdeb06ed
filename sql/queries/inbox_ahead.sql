-- Whether events are marked that come further on in the topic than the rows are by the positions.
SELECT EXISTS (
    SELECT FROM projector_rebuild.difference_inbox d
    JOIN projector_rebuild.inbox s ON s.message_id = d.message_id
    WHERE d._kind = 'unknown');
