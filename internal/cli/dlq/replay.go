package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/internal/replay"
	"projector/readmodel"
)

type replayCmd struct {
	Yes        bool       `help:"Do it. Without it, only print the plan."`
	FromFile   parse.File `kept:"" placeholder:"FILE" help:"Replay what export wrote and somebody has corrected, instead of the topic's records."`
	NotInTopic bool       `help:"With --from-file, also apply lines whose dead letter the DLQ topic does not have. They are recorded as altered."`
	ToTopic    string     `placeholder:"TOPIC" help:"Publish the records again to this topic, as they are, instead of applying them."`
	Reason     string     `placeholder:"TEXT" help:"Why, for the audit trail; required with --from-file."`
	Rate       int        `placeholder:"N" help:"At most this many records per second."`
	Limit      int        `placeholder:"N" help:"At most this many records, in the order of account and version."`
	MaxReplays int        `default:"10" placeholder:"N" help:"Refuse records that have been replayed this often (default 10)."`
	connect.ActorFlags
	filterFlags
	topicFlags
	output.Flags
}

// Run replays dead letters: it reads those that are chosen, plans, and with --yes does it.
func (c *replayCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	chosen, err := c.validate()
	if err != nil {
		return err
	}
	opened, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer opened.close()
	if c.ToTopic == "" {
		if err := c.Kept(ctx, opened.pool); err != nil {
			return err
		}
	}
	r := &replay.Replay{
		Store: opened.store(c.Rate), Actor: c.ActorName(), Reason: readmodel.Storable(c.Reason), MaxReplays: c.MaxReplays, Limit: c.Limit, ToTopic: c.ToTopic, Rate: c.Rate,
	}
	s := opened.scan(std, chosen, c.Yes)
	s.Payload, s.AllowNotInTopic = true, c.NotInTopic
	s.KeepOriginals = gate.Amounts()
	if err := c.gather(ctx, s, r); err != nil {
		return err
	}
	if err := r.Plan(ctx); err != nil {
		return err
	}
	if c.Yes {
		if err := gate.Pass(ctx, opened.pool, string(readmodel.ActionReplay), planned(r)); err != nil {
			return err
		}
		err = c.do(ctx, std, r)
	}
	// After an error too: what was done has to be said.
	if printErr := c.print(std, s, r, gate.Amounts()); err == nil {
		err = printErr
	}
	if lost := s.finish(std); err == nil {
		err = lost
	}
	if failed := r.Failed(); err == nil && c.Yes && failed > 0 {
		err = exit.Refusef("%d of %d records could not be applied", failed, len(r.Items))
	}
	return err
}

// planned is what has to be the same when the replay is approved: the plan and the values.
func planned(r *replay.Replay) func(*foureyes.Plan) error {
	return func(p *foureyes.Plan) error {
		for _, item := range r.Items {
			if err := p.Add(replayRow{item, false, false}.Document(), item.Digest()); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *replayCmd) validate() (replay.Selection, error) {
	switch {
	case c.FromFile.Given() && c.Reason == "":
		return replay.Selection{}, exit.Usagef("--reason: is required with --from-file: say why the events were corrected")
	case c.NotInTopic && !c.FromFile.Given():
		return replay.Selection{}, exit.Usagef("--not-in-topic: is for --from-file")
	case c.Rate < 0:
		return replay.Selection{}, exit.Usagef("--rate: must not be negative")
	case c.Limit < 0:
		return replay.Selection{}, exit.Usagef("--limit: must not be negative")
	case c.MaxReplays < 0:
		return replay.Selection{}, exit.Usagef("--max-replays: must not be negative")
	case c.ToTopic != "" && c.ToTopic == c.DeadLetterTopic():
		return replay.Selection{}, exit.Usagef("--to-topic: must not be the DLQ topic")
	}
	chosen, err := c.selection(time.Now(), &c.GroupFlags)
	// What was discarded is replayed only if it is asked for by that name.
	unlessChosen(&chosen, dlq.Open, dlq.Ready, dlq.Waiting, dlq.Resolved)
	return chosen, err
}

// gather reads the dead letters that are chosen, of the topic or of an export.
func (c *replayCmd) gather(ctx context.Context, s *scan, r *replay.Replay) error {
	defer s.shown.Done()
	if !c.FromFile.Given() {
		return refused(s.Each(ctx, r.Add), false)
	}
	file, err := c.FromFile.Open()
	if err != nil {
		return exit.Usagef("--from-file: %w", err)
	}
	defer func() { _ = file.Close() }()
	err = s.EachOfFile(ctx, file, r.Add)
	var (
		unreadable *replay.ExportError
		refusal    *replay.RefusedExportError
	)
	if errors.As(err, &refusal) {
		return exit.Refusef("--from-file: %s: %s; nothing was replayed", c.FromFile, refusal.Reason)
	}
	if errors.As(err, &unreadable) {
		return exit.Usagef("--from-file: %s: %s", c.FromFile, unreadable.Err.Error())
	}
	return err
}

// do does what was planned.
func (c *replayCmd) do(ctx context.Context, std *output.Streams, r *replay.Replay) error {
	if c.ToTopic == "" {
		shown := output.NewProgress(std.Err, "replayed")
		defer shown.Done()
		return r.Apply(ctx, shown.Update)
	}
	log, err := c.Logger(std.Err)
	if err != nil {
		return err
	}
	options, err := c.Client(log)
	if err != nil {
		return err
	}
	producer, err := replay.NewProducer(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	shown := output.NewProgress(std.Err, "published")
	defer shown.Done()
	return r.Publish(ctx, producer, shown.Update)
}

// replayDocument is a dead letter with what a replay would do, or did.
type replayDocument struct {
	letterDocument
	Plan   string  `json:"plan"`
	Result *string `json:"result,omitempty"`
	// Of a record that was read from a file.
	Altered    *bool `json:"altered,omitempty"`
	NotInTopic *bool `json:"not_in_topic,omitempty"`
	*amountsDocument
}

// notDone is the result of what a replay did not come to.
const notDone = "not_done"

// print prints the plan and, when it was carried out, the results.
func (c *replayCmd) print(std *output.Streams, s *scan, r *replay.Replay, amounts bool) error {
	name := "PLAN"
	if c.Yes {
		name = "RESULT"
	}
	rows := c.Rows(std.Out, "ACCOUNT", output.Left(name, 10), output.Left("ACCOUNT", 14),
		output.Right("VERSION", 7), output.Left("CLASS", 20).Optional(), output.Left("DLQ", 9),
		output.Text("WHY"))
	for _, item := range r.Items {
		if err := rows.Add(replayRow{item, c.Yes, amounts}); err != nil {
			return err
		}
	}
	if err := rows.End(""); err != nil || c.JSON() {
		return err
	}
	if amounts {
		if err := c.printAmounts(std, r); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(std.Out, c.summary(s, r.Items))
	return err
}

// replayRow is a dead letter with its plan or, when that was carried out, with what became
// of it.
type replayRow struct {
	*replay.Item
	done    bool
	amounts bool // are shown
}

// outcome is the plan, or what became of it.
func (r replayRow) outcome() string {
	if r.done {
		return cmp.Or(r.Result, notDone)
	}
	return r.Plan
}

// Document implements output.Row.
func (r replayRow) Document() any {
	d := replayDocument{letterDocument: document(r.DeadLetter), Plan: r.Plan}
	if r.done {
		d.Result = output.OrNull(r.outcome())
	}
	if r.Value != "" {
		d.Altered, d.NotInTopic = new(r.Altered()), new(r.NotInTopic)
	}
	if r.amounts {
		d.amountsDocument = amounts(r.Item)
	}
	d.Message = r.Reason()
	return d
}

// Cells implements output.Row.
func (r replayRow) Cells() []string {
	e := &r.Entry
	return []string{r.outcome(), output.OrDash(e.AccountID), output.VersionText(e.Received), string(e.Class), placeOf(e), output.OrDash(r.Reason())}
}

// summary counts the plans or the results.
func (c *replayCmd) summary(s *scan, items []*replay.Item) string {
	counts := map[string]int{}
	for _, item := range items {
		counts[replayRow{item, c.Yes, false}.outcome()]++
	}
	var parts []string
	for _, name := range []string{
		replay.PlanApply, string(readmodel.EffectApplied), readmodel.ResultPublished, replay.PlanDuplicate, replay.PlanWaiting,
		replay.PlanPoison, readmodel.ResultRefused, notDone,
	} {
		if counts[name] > 0 {
			parts = append(parts, strconv.Itoa(counts[name])+" "+name)
		}
	}
	text := cmp.Or(strings.Join(parts, ", "), s.nothing("nothing to replay"), "nothing to replay in the other partitions")
	if !c.Yes && len(items) > 0 {
		text += "; nothing was changed, add --yes to do it"
	}
	return text
}
