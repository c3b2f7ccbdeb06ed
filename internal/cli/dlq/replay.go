package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/cli/change"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/internal/topic"
	"projector/readmodel"
)

type replayCmd = change.Command[replayOptions, *replayOptions]

type replayOptions struct {
	FromFile   flags.File `placeholder:"FILE" help:"Replay what export wrote and somebody has corrected, instead of the topic's records."`
	NotInTopic bool       `help:"With --from-file, also apply lines whose dead letter the DLQ topic does not have. They are recorded as altered."`
	ToTopic    string     `placeholder:"TOPIC" help:"Publish the records again to this topic, as they are, instead of applying them."`
	Rate       int        `placeholder:"N" help:"At most this many records per second."`
	Limit      int        `placeholder:"N" help:"At most this many records, in the order of account and version."`
	MaxReplays int        `default:"10" placeholder:"N" help:"Refuse records that have been replayed this often (default 10)."`
	change.OptionalReasonFlags
	filterFlags
	topicFlags
	output.Flags

	chosen replay.Selection
}

func (*replayOptions) Action() readmodel.ActionKind { return readmodel.ActionReplay }

func (c *replayOptions) Check() (err error) {
	switch {
	case c.FromFile.Given() && strings.TrimSpace(c.Reason) == "":
		return exit.Usagef("--reason: is required with --from-file: say why the events were corrected")
	case c.NotInTopic && !c.FromFile.Given():
		return exit.Usagef("--not-in-topic: is for --from-file")
	case c.Rate < 0:
		return exit.Usagef("--rate: must not be negative")
	case c.Limit < 0:
		return exit.Usagef("--limit: must not be negative")
	case c.MaxReplays < 0:
		return exit.Usagef("--max-replays: must not be negative")
	case c.ToTopic != "" && c.ToTopic == c.DeadLetterTopic():
		return exit.Usagef("--to-topic: must not be the DLQ topic")
	}
	if c.chosen, err = c.selection(time.Now(), &c.GroupFlags); err != nil {
		return err
	}
	if c.FromFile.Given() || c.ToTopic != "" || c.filters() {
		unlessChosen(&c.chosen, dlq.Open, dlq.Ready, dlq.Waiting, dlq.Resolved)
	}
	unlessChosen(&c.chosen, dlq.Open, dlq.Ready, dlq.Waiting)
	return c.prepare()
}

func (c *replayOptions) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	if err := c.CheckGroup(ctx, on.Pool); err != nil {
		return nil, err
	}
	if c.ToTopic == "" {
		if err := c.CheckMapping(ctx, on.Pool, c.kind.Name()); err != nil {
			return nil, err
		}
		if err := c.CheckFile(ctx, on.Pool); err != nil {
			return nil, err
		}
	}
	if err := c.checkToTopic(ctx, on.Client); err != nil {
		return nil, err
	}
	t := c.tools(on.Pool, on.Client)
	p := &replayPlan{replayOptions: c, on: on, scan: t.scan(on.Std, c.chosen, on.Whole), replay: &replay.Replay{
		Store: t.store(c.Rate), Actor: on.Actor, Reason: on.Reason, MaxReplays: c.MaxReplays, Limit: c.Limit, ToTopic: c.ToTopic, Rate: c.Rate,
	}}
	p.scan.Payload, p.scan.AllowNotInTopic, p.scan.KeepOriginals = true, c.NotInTopic, on.Amounts
	if err := p.gather(ctx); err != nil {
		return nil, err
	}
	return p, p.replay.Plan(ctx)
}

func (c *replayOptions) checkToTopic(ctx context.Context, client *kgo.Client) error {
	if c.ToTopic == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	_, exists, err := topic.Describe(ctx, kadm.NewClient(client), c.ToTopic)
	if err == nil && !exists {
		// This is no exit.Refusal, because a request stays open if only the approver's --brokers are wrong.
		return errclass.Text(fmt.Sprintf("--to-topic: topic %q does not exist on these brokers; name the topic that the projector reads", c.ToTopic))
	}
	return err
}

type replayPlan struct {
	*replayOptions
	on     *change.On
	scan   *scan
	replay *replay.Replay
}

func (*replayPlan) DoneInParts() {}

// Hash implements change.Plan. The hash is made from the plan and the digest of each message.
func (p *replayPlan) Hash(_ context.Context, h *change.Hash) error {
	for _, item := range p.replay.Items {
		h.Add(describeItem(item, false, false), item.Digest())
	}
	return nil
}

func (p *replayPlan) gather(ctx context.Context) error {
	defer p.scan.shown.Done()
	if !p.FromFile.Given() {
		return refused(p.scan.Each(ctx, p.replay.Add))
	}
	file, err := p.FromFile.Open()
	if err != nil {
		return exit.Usagef("--from-file: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = p.scan.EachOfFile(ctx, file, p.replay.Add)
	if refusal, is := errors.AsType[*replay.RefusedExportError](err); is {
		return exit.Refusef("--from-file: %s: %s; nothing was replayed", p.FromFile, refusal.Reason)
	}
	if unreadable, is := errors.AsType[*replay.ExportError](err); is {
		return exit.Usagef("--from-file: %s: %s", p.FromFile, unreadable.Err.Error())
	}
	return err
}

func (p *replayPlan) Do(ctx context.Context) error {
	if p.ToTopic == "" {
		shown := output.NewProgress(p.on.Std.Err, "replayed")
		defer shown.Done()
		return p.replay.Apply(ctx, shown.Update)
	}
	options, err := p.Client(p.on.Log)
	if err != nil {
		return err
	}
	producer, err := replay.NewProducer(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	shown := output.NewProgress(p.on.Std.Err, "published")
	defer shown.Done()
	return p.replay.Publish(ctx, producer, shown.Update)
}

type replayDocument struct {
	deadLetterDocument
	Plan   string  `json:"plan"`
	Result *string `json:"result,omitempty"`
	// These fields are set only for a record that was read from a file.
	Altered    *bool `json:"altered,omitempty"`
	NotInTopic *bool `json:"not_in_topic,omitempty"`
	*amountsDocument
}

func (p *replayPlan) Print(ctx context.Context, done bool) error {
	if err := p.print(done); err != nil {
		return err
	}
	if err := p.scan.finish(ctx, p.on.Std); err != nil {
		return err
	}
	if failed := p.replay.Failed(); done && failed > 0 {
		return exit.Refusef("%d of %d records could not be applied", failed, len(p.replay.Items))
	}
	return nil
}

func (p *replayPlan) print(done bool) error {
	rows := p.Rows(p.on.Std.Out, "ACCOUNT", output.Outcome(done, 10), output.Left("ACCOUNT", 14),
		output.Right("VERSION", 7), output.Left("CLASS", 20).Optional(), output.Left("DLQ", 9),
		output.Text("WHY"))
	for _, item := range p.replay.Items {
		e := &item.Entry
		described := describeItem(item, done, p.on.Amounts)
		described.Message = cmp.Or(described.Message, e.Message) // not in the hash: earlier requests have it without
		rows.Add(described, item.Outcome(done), e.AccountID, e.Received, e.Class, placeOf(e), item.Reason())
	}
	if err := rows.End(""); err != nil || p.JSON() {
		return err
	}
	if p.on.Amounts {
		if err := p.printAmounts(); err != nil {
			return err
		}
	}
	p.on.Std.Printf("%s\n", p.summary(done))
	return nil
}

// describeItem describes a dead letter with its plan and, after the plan was executed, its result.
func describeItem(item *replay.Item, done, amounts bool) replayDocument {
	d := replayDocument{deadLetterDocument: document(item.DeadLetter), Plan: item.Plan}
	if done {
		d.Result = output.OrNull(item.Outcome(true))
	}
	if item.Value != "" {
		d.Altered, d.NotInTopic = new(item.Altered()), new(item.NotInTopic)
	}
	if amounts {
		d.amountsDocument = replayedAmounts(item)
	}
	d.Message = item.Reason()
	return d
}

func (p *replayPlan) summary(done bool) string {
	counts := replay.Counts{}
	for _, item := range p.replay.Items {
		counts[item.Outcome(done)]++
	}
	text := cmp.Or(counts.String(), p.scan.emptyResult("nothing to replay"), "nothing to replay in the other partitions")
	switch {
	case done || len(p.replay.Items) == 0:
	case counts[replay.PlanApply] > 0 && p.ToTopic == "":
		text += "; whether PostgreSQL accepts them is only known with --yes; " + p.on.NothingChanged()
	case p.ToTopic != "":
		text += "; " + p.on.NothingChanged()
	default:
		text += "; nothing was changed, and --yes would apply none of them"
	}
	return text
}
