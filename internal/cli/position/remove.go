package position

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"projector/errclass"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/readmodel"
)

type positionRemoveCmd struct {
	Group  string `env:"KAFKA_GROUP" required:"" placeholder:"NAME" group:"Target" help:"The consumer group that is no longer used."`
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes    bool   `help:"Do it. Without it, only say what would be done."`
	connect.ActorFlags
	connect.KafkaFlags
	connect.DatabaseFlags
	output.LogFlags
	output.Flags
}

// removedDocument is a position that was, or would be, removed, in JSON.
type removedDocument struct {
	Group     string  `json:"group"`
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Position  int64   `json:"position"`
	Result    *string `json:"result"`
}

// resultRemoved says that a position was removed.
const resultRemoved = "removed"

// Run removes the positions of a group that has no members.
func (c *positionRemoveCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	if c.Reason == "" {
		return exit.Usagef("--reason: must not be empty")
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	pool, client, err := connect.Both(ctx, &c.DatabaseFlags, &c.KafkaFlags, log)
	if err != nil {
		return err
	}
	defer pool.Close()
	defer client.Close()
	positions, err := readmodel.UnusedPositions(ctx, pool, c.Group, c.Topic)
	if err != nil {
		return err
	}
	if err := c.check(ctx, kadm.NewClient(client), positions); err != nil {
		return err
	}
	if c.Yes {
		if err := gate.Pass(ctx, pool, string(readmodel.ActionPositionSet), c.planned(positions)); err != nil {
			return err
		}
		err := readmodel.RemovePositions(ctx, pool, c.Group, c.Topic, positions, c.ActorName(), readmodel.Storable(c.Reason))
		switch {
		case errors.Is(err, readmodel.ErrPositionsMoved):
			return exit.Refusef("group %q has got an owner meanwhile; nothing was removed", c.Group)
		case errors.Is(err, readmodel.ErrMayNotRemove):
			return exit.Refusef("%s; give the role that migrates in --database-url (DATABASE_URL)", err)
		case err != nil:
			return err
		}
	}
	return c.print(std, positions)
}

// check refuses positions that somebody uses, or that keep events from being counted twice.
func (c *positionRemoveCmd) check(ctx context.Context, adm *kadm.Client, positions []readmodel.UnusedPosition) error {
	if len(positions) == 0 {
		return exit.Refusef("group %q has no positions in topic %q", c.Group, c.Topic)
	}
	groups, err := adm.DescribeGroups(ctx, c.Group)
	if err == nil {
		err = groups[c.Group].Err
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // a group that Kafka does not know has no members
		if errclass.Kafka(err).Unready() {
			return exit.Refusef("missing ACL: DESCRIBE on group %s: whether it is used cannot be asked", c.Group)
		}
		return fmt.Errorf("ask who is in the group: %w", err)
	}
	if n := readers(groups[c.Group], c.Topic); n > 0 {
		return exit.Refusef("group %q has %d instances that read topic %q; stop them first", c.Group, n, c.Topic)
	}
	kind := projections.KindNamed(positions[0].Projection)
	if kind != nil && kind.Memory() == nil {
		return nil // its rows know what they have taken in
	}
	i := slices.IndexFunc(positions, func(p readmodel.UnusedPosition) bool { return !p.Passed })
	if i < 0 {
		return nil
	}
	return exit.Refusef("partition %d: no other group of %s has come as far as %q: whoever began again would count events twice that its inbox has forgotten",
		positions[i].Partition, positions[i].Projection, c.Group)
}

// readers counts the members of a group that read a topic, or may: one that does not say
// what it reads may read anything.
func readers(group kadm.DescribedGroup, topic string) int {
	n := 0
	for _, member := range group.Members {
		if joined, says := member.Join.AsConsumer(); !says || slices.Contains(joined.Topics, topic) {
			n++
		}
	}
	return n
}

func (c *positionRemoveCmd) document(p readmodel.UnusedPosition) removedDocument {
	return removedDocument{Group: c.Group, Topic: c.Topic, Partition: p.Partition, Position: p.Next}
}

// planned has to be the same when it is approved.
func (c *positionRemoveCmd) planned(positions []readmodel.UnusedPosition) func(*foureyes.Plan) error {
	return func(plan *foureyes.Plan) error {
		for _, p := range positions {
			if err := plan.Add(c.document(p)); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *positionRemoveCmd) print(std *output.Streams, positions []readmodel.UnusedPosition) error {
	return printChanges(std, &c.Flags, c.Yes, len(positions), func(i int) (document any, text string) {
		d, done := c.document(positions[i]), "would be removed"
		if c.Yes {
			done, d.Result = resultRemoved, output.OrNull(resultRemoved)
		}
		return d, fmt.Sprintf("partition %d: position %d %s", d.Partition, d.Position, done)
	})
}
