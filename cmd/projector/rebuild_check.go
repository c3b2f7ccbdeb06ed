package main

import (
	"context"
	"fmt"

	"projector/projection"
	"projector/readmodel"
)

// prepare looks at the topic and the database, and refuses what cannot end well.
func (r *rebuilding) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	// The positions first: they only grow, and never beyond the end.
	positions, err := readmodel.LoadTopicPositions(ctx, r.pool, r.cmd.Topic)
	if err != nil {
		return err
	}
	if r.topic, err = r.source.extent(ctx); err != nil {
		return err
	}
	stored, err := readmodel.LoadPositions(ctx, r.pool, r.cmd.group(), r.cmd.Topic)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		return refusef("group %s has no position in topic %s: nothing of it is projected yet, so there is nothing to rebuild", r.cmd.group(), r.cmd.Topic)
	}
	if err := r.checkTopic(ctx); err != nil {
		return err
	}
	for _, p := range positions {
		if end, known := r.topic.ends[p.Partition]; known && p.Next > end {
			return refusef("partition %d: the position %d lies beyond the topic's end at %d: the topic was truncated, so it cannot "+
				"have all that was projected", p.Partition, p.Next, end)
		}
	}
	if _, err := r.ends(positions); err != nil {
		return err
	}
	if err := r.checkSources(ctx); err != nil {
		return err
	}
	return r.checkDatabase(ctx)
}

// checkSources refuses a topic that the balances did not come from, as far as that was
// ever noted, and whatever the positions say now.
func (r *rebuilding) checkSources(ctx context.Context) error {
	ids, err := readmodel.LoadSourceIDs(ctx, r.pool, readmodel.BalanceName, r.cmd.Topic)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !projection.SameTopic(id, r.topic.id) {
			return refusef("balances come from another topic of this name, which was deleted (id %[2]s; now it is %[3]s): what only the "+
				"deleted one knew would be taken for wrong. If topic %[1]s has every event from the first one on, say so: "+
				"DELETE FROM projector_source WHERE projection = '%[4]s' AND topic = '%[1]s' AND topic_id = '%[2]s'; "+
				"see the runbook, \"topic recreated\"", r.cmd.Topic, id, r.topic.id, readmodel.BalanceName)
		}
	}
	return nil
}

// checkTopic refuses a topic that has lost records, unless that is known.
func (r *rebuilding) checkTopic(ctx context.Context) error {
	if r.cmd.Partial {
		return nil
	}
	const remedy = "a rebuild from what is left would be wrong; --partial rebuilds the accounts of which every event is there"
	for number, start := range r.topic.starts {
		if start > 0 {
			return refusef("partition %d of topic %s begins at offset %d: earlier records were removed; %s", number, r.cmd.Topic, start, remedy)
		}
	}
	compacted, err := r.source.compacted(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(r.std.err, "whether topic %s is compacted cannot be seen, and must not be: %s\n", r.cmd.Topic, err)
		return nil
	}
	if compacted {
		return refusef("topic %s is compacted, so it loses events; %s", r.cmd.Topic, remedy)
	}
	return nil
}

// stillWhole refuses when records were removed while they were read.
func (r *rebuilding) stillWhole(ctx context.Context) error {
	now, err := r.source.extent(ctx)
	if err != nil {
		return err
	}
	if now.id != r.topic.id {
		return refusef("topic %s was deleted and created again while it was read", r.cmd.Topic)
	}
	for number, start := range now.starts {
		if start > r.topic.starts[number] && !r.cmd.Partial {
			return refusef("partition %d of topic %s begins at offset %d now: records were removed while they were read", number, r.cmd.Topic, start)
		}
	}
	return nil
}

func (r *rebuilding) checkDatabase(ctx context.Context) error {
	others, err := readmodel.LoadOtherTopics(ctx, r.pool, r.cmd.Topic)
	if err != nil {
		return err
	}
	if len(others) > 0 && !r.cmd.Partial {
		return refusef("balances come from topic %s, too, and which account is from where cannot be told: --partial removes none. "+
			"If that topic is history, delete its rows in projector_position and projector_source", others[0])
	}
	dependents, err := readmodel.LoadDependents(ctx, r.pool)
	if err != nil {
		return err
	}
	if len(dependents) > 0 {
		return refusef("table %s has a foreign key to account_balance that deletes or changes its rows when a balance is replaced; "+
			"make it NO ACTION DEFERRABLE INITIALLY DEFERRED, or drop it", dependents[0])
	}
	return nil
}
