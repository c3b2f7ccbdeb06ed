package position

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/cli/change"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/topic"
	"projector/readmodel"
)

// changeFlags are the flags of the commands that change positions. They select the partitions, give
// the reason, and configure the connections.
type changeFlags struct {
	Partition *int32 `placeholder:"N" group:"Target" help:"One partition."`
	All       bool   `group:"Target" help:"All partitions."`
	NewGroup  bool   `help:"Accept a consumer group that has no positions yet."`
	change.ReasonFlags
	flags.KafkaFlags
	flags.DatabaseFlags
	flags.GroupFlags
	output.LogFlags
	output.Flags
}

func (f *changeFlags) Check() error {
	switch {
	case f.All == (f.Partition != nil):
		return exit.Usagef("give one of --partition=N and --all")
	case f.Partition != nil && *f.Partition < 0:
		return exit.Usagef("--partition: must not be less than 0")
	}
	return f.GroupFlags.Check()
}

func (f *changeFlags) partitionKey() readmodel.Partition {
	return readmodel.Partition{Projection: f.Projection, Group: f.GroupName(), Topic: f.Topic}
}

// checkGroup refuses a group without positions. The name of such a group is probably mistyped, and
// no consumer would notice the change.
func (f *changeFlags) checkGroup(ctx context.Context, pool *pgxpool.Pool) error {
	if err := readmodel.CheckGroup(ctx, pool, f.GroupName(), f.Projection); err != nil || f.NewGroup {
		return err
	}
	groups, err := readmodel.LoadGroups(ctx, pool, f.Projection)
	if err != nil || slices.Contains(groups, f.GroupName()) {
		return err
	}
	others := "none has"
	if len(groups) > 0 {
		others = "those that have are " + strings.Join(groups, ", ")
	}
	return exit.Refusef("group %q (--group, KAFKA_GROUP) has no positions of %s, %s; --new-group accepts it. Nothing was changed",
		f.GroupName(), f.Projection, others)
}

// noTopic returns no exit.Refusal, because a request stays open if only the approver's --brokers are
// wrong.
func noTopic(name string) error {
	return errclass.Text(fmt.Sprintf("topic %q (--topic, KAFKA_TOPIC) does not exist on these brokers; check the name and --brokers (KAFKA_BROKERS)", name))
}

// chosen returns the selected partitions, sorted, and the topic's id.
func (f *changeFlags) chosen(ctx context.Context, reader *topic.Reader) (chosen []topic.Extent, topicID string, err error) {
	extents, exists, err := reader.Extents(ctx)
	if err != nil {
		return nil, "", err
	}
	if !exists {
		return nil, "", noTopic(f.Topic)
	}
	for _, e := range extents.Partitions {
		if !f.All && e.Partition != *f.Partition {
			continue
		}
		if e.Err != nil {
			return nil, "", e.Err
		}
		chosen = append(chosen, e)
	}
	if len(chosen) == 0 {
		return nil, "", exit.Refusef("--partition: topic %q has no partition %d; it has %s", f.Topic, *f.Partition, output.PartitionsText(len(extents.Partitions)))
	}
	return chosen, extents.TopicID, nil
}

// groupDocument names the group and the projection whose positions are changed. It is a part of the
// output and of the plan's hash.
type groupDocument struct {
	Group      string `json:"group"`
	Projection string `json:"projection"`
}

func (f *changeFlags) group() groupDocument { return groupDocument{f.GroupName(), f.Projection} }

func (f *changeFlags) print(on *change.On, done bool, n int, partition func(i int) (document any, text string)) error {
	if !f.JSON() {
		on.Std.Printf("group %s, projection %s\n", f.GroupName(), f.Projection)
	}
	return printChanges(on, &f.Flags, done, n, partition)
}

func printChanges(on *change.On, as *output.Flags, done bool, n int, one func(i int) (document any, text string)) error {
	for i := range n {
		document, text := one(i)
		if err := as.Print(on.Std.Out, document, text+"\n"); err != nil {
			return err
		}
	}
	if !done && !as.JSON() {
		on.Std.Printf("%s\n", on.NothingChanged())
	}
	return nil
}
