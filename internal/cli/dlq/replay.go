package dlq

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"projector/dlq"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

type dlqReplayCmd struct {
	Yes        bool   `help:"Do it. Without it, only print the plan."`
	FromFile   string `type:"existingfile" placeholder:"FILE" help:"Replay what export wrote and somebody has corrected, instead of the topic's records."`
	ToTopic    string `placeholder:"TOPIC" help:"Publish the records again to this topic, as they are, instead of applying them."`
	Rate       int    `placeholder:"N" help:"At most so many records a second."`
	Limit      int    `placeholder:"N" help:"At most so many records, in the order of account and version."`
	MaxReplays int    `default:"10" placeholder:"N" help:"Refuse records that have been replayed so often (default 10)."`
	connect.ActorFlags
	TopicFlags
	filterFlags
	output.Flags
}

// Plans of the contract: what a replay would do.
const (
	planApply     = "will_apply"
	planDuplicate = string(readmodel.EffectDuplicate)
	planWaiting   = string(readmodel.EffectWaiting)
	planPoison    = string(readmodel.EffectPoison)
)

// replayItem is one dead letter to replay.
type replayItem struct {
	*DeadLetter
	plan   string
	result string // empty: nothing was done
	why    string // of a plan or result that is none of the record's own doing
	// repair is nil for what is not judged: its plan is fixed.
	repair *readmodel.RepairRecord
}

// Run replays dead letters.
func (c *dlqReplayCmd) Run(ctx context.Context, std *output.Streams) error {
	chosen, err := c.validate()
	if err != nil {
		return err
	}
	tools, err := c.Open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.Close()
	r := &replay{
		cmd: c, std: std,
		Scan:    Scan{Tools: tools, selection: chosen, payload: true, whole: c.Yes, progress: output.NewProgress(std.Err, "read")},
		letters: tools.letters(c.Rate),
	}
	return r.run(ctx)
}

func (c *dlqReplayCmd) validate() (selection, error) {
	switch {
	case c.Rate < 0:
		return selection{}, exit.Usagef("--rate: must not be negative")
	case c.Limit < 0:
		return selection{}, exit.Usagef("--limit: must not be negative")
	case c.MaxReplays < 0:
		return selection{}, exit.Usagef("--max-replays: must not be negative")
	case c.ToTopic != "" && c.ToTopic == c.DeadLetterTopic():
		return selection{}, exit.Usagef("--to-topic: must not be the DLQ topic")
	}
	chosen, err := c.selection(time.Now(), &c.GroupFlags)
	// What was discarded is replayed only if it is asked for by that name.
	chosen.unlessChosen(dlq.Open, dlq.Ready, dlq.Waiting, dlq.Resolved)
	return chosen, err
}

// replay is one run of `dlq replay`.
type replay struct {
	cmd *dlqReplayCmd
	std *output.Streams
	Scan
	letters readmodel.Letters
	items   []*replayItem
	judged  []*readmodel.RepairRecord // what is to be judged of the items
}

func (r *replay) run(ctx context.Context) error {
	if err := r.gather(ctx); err != nil {
		return err
	}
	r.order()
	if err := r.makePlan(ctx); err != nil {
		return err
	}
	var err error
	switch {
	case !r.cmd.Yes:
	case r.cmd.ToTopic != "":
		err = r.publish(ctx)
	default:
		err = r.apply(ctx)
	}
	// After an error too: what was done has to be said.
	if printErr := r.print(); err == nil {
		err = printErr
	}
	if lost := r.finish(r.std); err == nil {
		err = lost
	}
	return err
}

// gather reads the dead letters that are chosen.
func (r *replay) gather(ctx context.Context) error {
	defer r.progress.Done()
	if r.cmd.FromFile != "" {
		return r.gatherFile(ctx)
	}
	return r.Each(ctx, r.keep)
}

// keep keeps a dead letter; of one that is passed not its payload, which nobody needs.
func (r *replay) keep(d *DeadLetter) error {
	if d.status == dlq.Resolved && r.cmd.ToTopic == "" {
		d.Entry.Key, d.Entry.Value, d.Entry.Headers = nil, nil, nil
	}
	d.Entry.EventID = cmp.Or(d.decoded.Event.ID, d.Entry.EventID) // one copy of it
	d.Entry.AccountID = cmp.Or(d.decoded.Event.AccountID, d.Entry.AccountID)
	r.items = append(r.items, &replayItem{DeadLetter: d})
	if limit := r.cmd.Limit; limit > 0 && len(r.items) >= 2*limit+ScanRecords {
		r.order() // with a limit a million dead letters need no room
	}
	return nil
}

// gatherFile reads the dead letters of an export.
func (r *replay) gatherFile(ctx context.Context) error {
	file, err := os.Open(r.cmd.FromFile)
	if err != nil {
		return exit.Usagef("--from-file: %w", err)
	}
	defer func() { _ = file.Close() }()
	var chunk []*DeadLetter
	for exported, err := range dlq.ReadExport(file) {
		if err != nil {
			return exit.Usagef("--from-file: %s: %s", r.cmd.FromFile, err.Error())
		}
		d, err := r.take(ctx, exported.DLQTopic, exported.Entry, exported.Corrected)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		d.Entry.Expected = exported.ExpectedOf(d.Entry.AccountID)
		if len(chunk) > 0 && (len(chunk) >= ScanRecords || chunk[0].dlqTopic != d.dlqTopic) {
			if err := r.hand(ctx, chunk, r.keep); err != nil {
				return err
			}
			chunk = chunk[:0]
		}
		chunk = append(chunk, d)
	}
	return r.hand(ctx, chunk, r.keep)
}

// order sorts by account and version, and keeps the first that are allowed.
func (r *replay) order() {
	slices.SortStableFunc(r.items, func(a, b *replayItem) int {
		x, y := &a.Entry, &b.Entry
		return cmp.Or(strings.Compare(x.AccountID, y.AccountID), compareVersions(x.Received, y.Received),
			cmp.Compare(x.DLQPartition, y.DLQPartition), cmp.Compare(x.DLQOffset, y.DLQOffset))
	})
	if r.cmd.Limit > 0 && len(r.items) > r.cmd.Limit {
		clear(r.items[r.cmd.Limit:])
		r.items = r.items[:r.cmd.Limit]
	}
}

// compareVersions sorts unknown versions first.
func compareVersions(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return cmp.Compare(*a, *b)
	}
}

// makePlan judges what can be judged and fixes the plan of the rest.
func (r *replay) makePlan(ctx context.Context) error {
	for _, item := range r.items {
		if item.fix(r.cmd.MaxReplays); item.plan != "" {
			continue
		}
		item.repair = item.record(r.cmd.ActorName())
		r.judged = append(r.judged, item.repair)
	}
	if err := r.letters.Plan(ctx, r.judged); err != nil {
		return err
	}
	for _, item := range r.items {
		if item.repair == nil {
			continue
		}
		item.plan = string(readmodel.EffectOf(item.repair.Verdict))
		if item.plan == string(readmodel.EffectApplied) {
			item.plan = planApply
		}
	}
	return nil
}

// fix sets the plan of a dead letter that is not judged.
func (i *replayItem) fix(maxReplays int) {
	e, d := &i.Entry, &i.decoded
	conflict := e.Class == event.VersionConflict && !i.corrected
	switch {
	case i.status == dlq.Resolved && d.Identity != event.Identified:
		i.plan = planDuplicate
	case e.Truncated:
		i.plan, i.why = planPoison, dlq.ErrTruncated.Error()
	case d.Identity != event.Identified && d.Fault != nil:
		i.plan, i.why = planPoison, d.Fault.Error()
	case d.Identity != event.Identified:
		i.plan, i.why = planPoison, "there is no event in it"
	case conflict:
		i.plan, i.why = planPoison, "another event was applied at this version"
	case i.replays >= maxReplays && i.status != dlq.Resolved:
		i.plan, i.result, i.why = planPoison, readmodel.ResultRefused, "it has been replayed too often, see --max-replays"
	}
}

// record is what a repair needs of a dead letter.
func (i *replayItem) record(actor string) *readmodel.RepairRecord {
	e := &i.Entry
	return &readmodel.RepairRecord{
		Judgeable: projection.Judgeable{
			Decoded: i.decoded,
			Record: projection.Record{
				Message: event.Message{Key: e.Key, Value: e.Value, Headers: e.Headers},
				Topic:   e.Topic, Partition: e.Partition, Offset: e.Offset, Timestamp: e.Timestamp, Replays: i.replays + 1,
			},
		},
		JudgedBefore: !i.corrected,
		FailedAt:     e.FailedAt,
		Action:       i.action(readmodel.ActionReplay, actor),
	}
}
