package position

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"projector/errclass"
	"projector/internal/cli/change"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

type removeCmd = change.Command[remove, *remove]

type remove struct {
	Group string `env:"KAFKA_GROUP" required:"" placeholder:"NAME" group:"Target" help:"The consumer group that is no longer used."`
	change.ReasonFlags
	flags.KafkaFlags
	flags.DatabaseFlags
	output.LogFlags
	output.Flags
}

type removedDocument struct {
	Group     string  `json:"group"`
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Position  int64   `json:"position"`
	Result    *string `json:"result"`
}

// resultRemoved says that a position was removed.
const resultRemoved = "removed"

func (*remove) Action() readmodel.ActionKind { return readmodel.ActionPositionSet }

func (*remove) Check() error { return nil }

func (c *remove) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	positions, err := readmodel.UnusedPositions(ctx, on.Pool, c.Group, c.Topic)
	if err != nil {
		return nil, err
	}
	if err := c.check(ctx, kadm.NewClient(on.Client), positions); err != nil {
		return nil, err
	}
	if on.Now && !positions[0].Removable {
		return nil, errMayNotRemove
	}
	return &removePlan{c, on, positions}, nil
}

// errMayNotRemove is no exit.Refusal, because a request that this role cannot carry out must stay
// open for the owner of the schema.
const errMayNotRemove = errclass.Text("missing privileges: DELETE on projector_position (SQLSTATE 42501); " +
	"nothing was changed; give the role that migrates in --database-url (DATABASE_URL)")

// removePlan removes the positions of a group in a topic that no member of the group reads.
type removePlan struct {
	*remove
	on        *change.On
	positions []readmodel.UnusedPosition
}

func (p *removePlan) Do(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	err := readmodel.RemovePositions(ctx, p.on.Pool, p.Group, p.Topic, p.positions, p.on.Actor, p.on.Reason)
	if errors.Is(err, readmodel.ErrPositionsMoved) {
		return exit.Refusef("group %q has got an owner meanwhile, or another group was removed or set back; nothing was removed; run it again", p.Group)
	}
	return err
}

// check refuses to remove positions that are in use, and positions without which events could be
// counted twice.
func (c *remove) check(ctx context.Context, adm *kadm.Client, positions []readmodel.UnusedPosition) error {
	if len(positions) == 0 {
		return exit.Refusef("group %q has no positions in topic %q", c.Group, c.Topic)
	}
	group, err := describeGroup(ctx, adm, c.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // a group that is unknown to Kafka has no members
		if errclass.Kafka(err).Unready() {
			return exit.Passing("missing ACL: DESCRIBE on group %s: whether it is used cannot be asked", c.Group)
		}
		return fmt.Errorf("ask who is in the group: %w", err)
	}
	if n := readers(group, c.Topic); n > 0 {
		return exit.Passing("group %q has %s reading topic %q: stop all of its instances first", c.Group, output.Counted(n, "instance"), c.Topic)
	}
	i := slices.IndexFunc(positions, needed)
	if i < 0 {
		return nil
	}
	return exit.Refusef("partition %d: no other group of %s has come as far as %q: to begin again would count events twice that its inbox has forgotten; "+
		"keep the positions until another group has come as far",
		positions[i].Partition, positions[i].Projection, c.Group)
}

// needed reports whether events could be counted twice without the position. The rows of some
// projections show which events they contain. For other projections, another group must have
// reached the position.
func needed(p readmodel.UnusedPosition) bool {
	kind := flags.DefinitionNamed(p.Projection)
	shown := kind != nil && kind.Memory() == nil || p.Ordered
	return !shown && !p.Passed
}

// readers counts the members of a group that may read a topic. A member that does not report its
// topics may read any topic.
func readers(group kadm.DescribedGroup, topic string) int {
	n := 0
	for _, member := range group.Members {
		if joined, says := member.Join.AsConsumer(); !says || slices.Contains(joined.Topics, topic) {
			n++
		}
	}
	return n
}

func (c *remove) document(p readmodel.UnusedPosition) removedDocument {
	return removedDocument{Group: c.Group, Topic: c.Topic, Partition: p.Partition, Position: p.Next}
}

func (p *removePlan) Hash(_ context.Context, h *change.Hash) error {
	for _, position := range p.positions {
		h.Add(p.document(position))
	}
	return nil
}

func (p *removePlan) Print(_ context.Context, done bool) error {
	return printChanges(p.on, &p.Flags, done, len(p.positions), func(i int) (document any, text string) {
		d, verb := p.document(p.positions[i]), "would be removed"
		if done {
			verb, d.Result = resultRemoved, output.OrNull(resultRemoved)
		}
		return d, fmt.Sprintf("partition %d: position %d %s", d.Partition, d.Position, verb)
	})
}
