package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/topic"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/citus"
	"projector/readmodel/rebuild"
)

// prepare checks the topic and the database, and refuses a rebuild that cannot succeed.
func (r *rebuilding) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	obstacles, err := r.obstacles(ctx)
	if err == nil && len(obstacles) > 0 {
		err = exit.Refuse(obstacles[0])
	}
	return err
}

// obstacles returns the reasons why a rebuild cannot succeed, the most important first.
func (r *rebuilding) obstacles(ctx context.Context) ([]string, error) {
	// Read the positions before the ends of the topic. Otherwise a consumer could move a position
	// beyond an end that was read earlier.
	positions, err := rebuild.LoadTopicPositions(ctx, r.on.Pool, r.cmd.kind.Name(), r.cmd.Topic)
	if err != nil {
		return nil, err
	}
	if r.topic, err = r.source.extents(ctx); err != nil {
		if refused, is := errors.AsType[exit.Refusal](err); is {
			return []string{refused.Error()}, nil
		}
		return nil, err
	}
	var all []string
	for _, find := range []func(context.Context) ([]string, error){
		r.obstaclesOfGroup, r.obstaclesOfTopic,
		func(context.Context) ([]string, error) { return r.obstaclesOfPositions(positions), nil },
		r.obstaclesOfSources, r.obstaclesOfDatabase,
	} {
		some, err := find(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (r *rebuilding) obstaclesOfGroup(ctx context.Context) ([]string, error) {
	stored, err := readmodel.LoadPositions(ctx, r.on.Pool, r.cmd.GroupName(), r.cmd.Topic)
	if err != nil || len(stored) > 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("group %s has no position in topic %s: nothing of it is projected yet, so there is nothing to rebuild",
		r.cmd.GroupName(), r.cmd.Topic)}, nil
}

// obstaclesOfTopic returns the reasons against a rebuild if the topic has lost records, unless the
// flags accept such a topic.
func (r *rebuilding) obstaclesOfTopic(ctx context.Context) (all []string, err error) {
	remedy := "a rebuild from what is left would be wrong"
	if !sums(r.cmd.kind) {
		remedy += "; --partial rebuilds the " + r.nouns() + " of which every event is there"
	}
	opened, unopened, err := r.opened(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range r.topic.Partitions {
		if p.Start > 0 && !opened {
			all = append(all, fmt.Sprintf("partition %d of topic %s begins at offset %d: earlier records were removed%s; %s", p.Partition, r.cmd.Topic, p.Start, unopened, remedy))
		}
	}
	settings, err := topic.Settings(ctx, r.source.adm, r.cmd.Topic)
	if r.policy = settings[topic.CleanupPolicy]; err != nil {
		r.on.Std.Notef("whether topic %s is compacted cannot be seen, and must not be: %s\n", r.cmd.Topic, errclass.Safe(err))
	}
	if strings.Contains(r.policy, "compact") {
		all = append(all, fmt.Sprintf("topic %s is compacted, so it loses events; %s", r.cmd.Topic, remedy))
	}
	if r.cmd.Partial {
		return nil, nil
	}
	return all, nil
}

// opened reports whether every account has an opening balance from a ledger, so that the lost
// records are not needed. The text unopened describes accounts without an opening balance.
func (r *rebuilding) opened(ctx context.Context) (opened bool, unopened string, err error) {
	if r.cmd.kind.Name() != readmodel.BalanceName || !r.lacksBeginning() {
		return false, "", nil
	}
	o, err := rebuild.LoadOpened(ctx, r.on.Pool)
	if err != nil || o.Some && o.Lacking == 0 {
		return err == nil, "", err
	}
	if o.Some {
		unopened = fmt.Sprintf(", and %d accounts have no opening, the first of them %q (see projector open)", o.Lacking, o.Example)
	}
	return false, unopened, nil
}

func (r *rebuilding) lacksBeginning() bool {
	return slices.ContainsFunc(r.topic.Partitions, func(p topic.Extent) bool { return p.Start > 0 })
}

func (r *rebuilding) obstaclesOfPositions(positions []rebuild.TopicPosition) (all []string) {
	for _, p := range positions {
		// The end of another topic does not show that records were removed.
		if log, known := r.topic.Of(p.Partition); known && ofTopic(&r.topic, p) && p.Next > log.End {
			all = append(all, fmt.Sprintf("partition %d: the position %d lies beyond the topic's end at %d: the topic was truncated, so it cannot "+
				"have all that was projected", p.Partition, p.Next, log.End))
		}
	}
	for _, p := range positions {
		if text := misplaced(&r.topic, p); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// ofTopic reports whether the position belongs to this topic, and not to a deleted one of its name.
func ofTopic(all *topic.Extents, p rebuild.TopicPosition) bool {
	return projection.SameTopic(p.LowestID, all.TopicID) && projection.SameTopic(p.HighestID, all.TopicID)
}

// misplaced returns why the topic cannot be read up to a position, or "".
func misplaced(all *topic.Extents, p rebuild.TopicPosition) string {
	log, known := all.Of(p.Partition)
	switch {
	case !ofTopic(all, p):
		return fmt.Sprintf("partition %d: a stored position belongs to another topic of this name (deleted, or of another cluster); "+
			"see the runbook, \"topic recreated\"", p.Partition)
	case !known:
		return fmt.Sprintf("partition %d: there is a position and no such partition", p.Partition)
	case p.Next < log.Start:
		return fmt.Sprintf("partition %d: offsets %d to %d were removed by retention before they were consumed; "+
			"see the runbook, \"position expired\"", p.Partition, p.Next, log.Start-1)
	}
	return ""
}

// noun returns the noun for what is compared: account or row. The method nouns returns its plural.
func (r *rebuilding) noun() string {
	if r.cmd.kind.Name() == readmodel.BalanceName {
		return "account"
	}
	return "row"
}

func (r *rebuilding) nouns() string { return r.noun() + "s" }

// obstaclesOfSources returns one reason against a rebuild for each deleted topic of the same name
// from which rows have come. It uses the recorded topic ids, because positions show only the
// present topic.
func (r *rebuilding) obstaclesOfSources(ctx context.Context) (all []string, err error) {
	ids, err := readmodel.LoadSourceIDs(ctx, r.on.Pool, r.cmd.kind.Name(), r.cmd.Topic)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !projection.SameTopic(id, r.topic.TopicID) {
			all = append(all, fmt.Sprintf("rows of %s come from another topic of this name, which was deleted (projector_source has its id %s; now it is %s): "+
				"what only the deleted one knew would be taken for wrong; see the runbook, \"topic recreated\"", r.cmd.kind.Name(), id, r.topic.TopicID))
		}
	}
	return all, nil
}

func (r *rebuilding) obstaclesOfDatabase(ctx context.Context) (all []string, err error) {
	topics, err := readmodel.LoadTopics(ctx, r.on.Pool, r.cmd.kind.Name())
	if err != nil {
		return nil, err
	}
	other := slices.IndexFunc(topics, func(t readmodel.SourceTopic) bool { return t.Name != r.cmd.Topic })
	if other >= 0 && !r.cmd.Partial {
		text := fmt.Sprintf("rows of %s come from topic %s, too, and it is not known which row is from which topic", r.cmd.kind.Name(), topics[other].Name)
		if !sums(r.cmd.kind) {
			text += ": --partial removes none"
		}
		all = append(all, text+" (projector_source). If that topic is no longer used, see docs/repairs.md, \"Another database, from the beginning\"")
	}
	tables := []string{}
	for _, t := range r.cmd.kind.Rebuilds() {
		tables = append(tables, t.Name)
	}
	distributed, err := citus.Load(ctx, r.on.Pool)
	if err != nil {
		return nil, err
	}
	for _, t := range distributed {
		if t.Shards > 0 && slices.Contains(tables, t.Name) {
			all = append(all, "table "+t.Name+" is distributed by Citus, and a rebuild compares it with tables that are not: "+
				"project the topic into a database of its own and change over when verify agrees (docs/postgres.md)")
		}
	}
	dependents, err := rebuild.LoadDependents(ctx, r.on.Pool, tables)
	if err != nil {
		return nil, err
	}
	if len(dependents) > 0 {
		all = append(all, fmt.Sprintf("table %s has a foreign key to %s that deletes or changes its rows when one is replaced; "+
			"make it NO ACTION DEFERRABLE INITIALLY DEFERRED, or drop it", dependents[0], r.cmd.kind.Name()))
	}
	if r.cmd.kind.Memory() != nil {
		tables = append(tables, "inbox")
	}
	room, err := rebuild.LoadShadowRoom(ctx, r.on.Pool, tables)
	if err != nil {
		return nil, err
	}
	if r.needs = room.Bytes; room.Missing != "" {
		all = append(all, "missing privileges: "+room.Missing+" (SQLSTATE 42501): a rebuild has its tables in the schema projector_rebuild, "+
			"which the owner of the read model's tables makes; run sql/roles.sql again, or use a login in projector_operator (docs/security.md, \"Roles\")")
	}
	missing, err := r.missingOfOwn(ctx)
	return append(all, missing...), err
}

// missingOfOwn returns the missing table or grants that prevent the rebuild of a custom projection.
// The program does not create these tables and grants.
func (r *rebuilding) missingOfOwn(ctx context.Context) ([]string, error) {
	if own, err := r.cmd.CustomProjection(); own == nil {
		return nil, err
	}
	var table *rebuild.TableError
	switch err := rebuild.CheckTables(ctx, r.on.Pool, r.cmd.kind.Rebuilds()); {
	case errors.As(err, &table):
		return []string{table.Error()}, nil
	case err != nil:
		return nil, err
	}
	missing, err := rebuild.LoadGrants(ctx, r.on.Pool, r.cmd.kind.Rebuilds(), r.on.Now)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return []string{"missing privileges (SQLSTATE 42501): " + strings.TrimSuffix(strings.Join(missing, " "), ";")}, nil
}

// stillWhole returns an error if the topic was recreated during the rebuild, or has lost records
// and the flag --partial is not given.
func (r *rebuilding) stillWhole(ctx context.Context) error {
	now, err := r.source.extents(ctx)
	if err != nil {
		return err
	}
	if !projection.SameTopic(now.TopicID, r.topic.TopicID) {
		return exit.Refusef("topic %s was deleted and created again while it was read", r.cmd.Topic)
	}
	for _, log := range now.Partitions {
		if before, _ := r.topic.Of(log.Partition); log.Start > before.Start && !r.cmd.Partial {
			return exit.Refusef("partition %d of topic %s begins at offset %d now: records were removed while they were read", log.Partition, r.cmd.Topic, log.Start)
		}
	}
	return nil
}

// rebuiltName returns a name of the rebuilt data for texts that a user reads.
func rebuiltName(kind readmodel.Definition) string {
	if kind.Name() == readmodel.BalanceName {
		return "balances"
	}
	return "rows of " + kind.Name()
}
