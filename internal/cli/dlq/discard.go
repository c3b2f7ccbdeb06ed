package dlq

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"projector/dlq"
	"projector/internal/cli/change"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

type discardCmd = change.Command[discard, *discard]

type discard struct {
	change.ReasonFlags
	filterFlags
	topicFlags
	output.Flags

	chosen replay.Selection
}

type discardDocument struct {
	deadLetterDocument
	Parked bool `json:"parked"` // the event was parked, and is or would be removed
	// ParkedInstead is the partition and offset in the DLQ topic of the event that is or would be parked
	// instead.
	ParkedInstead *string `json:"parked_instead,omitempty"`
	Result        *string `json:"result,omitempty"`
}

func (*discard) Action() readmodel.ActionKind { return readmodel.ActionDiscard }

// Check implements change.Change. Without --status it selects dead letters that still need an action.
func (c *discard) Check() (err error) {
	if c.chosen, err = c.selection(time.Now(), &c.GroupFlags); err != nil {
		return err
	}
	unlessChosen(&c.chosen, dlq.Open, dlq.Ready, dlq.Waiting)
	return c.prepare()
}

func (c *discard) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	if err := c.CheckGroup(ctx, on.Pool); err != nil {
		return nil, err
	}
	if err := c.CheckMapping(ctx, on.Pool, c.kind.Name()); err != nil { // the event's account and version depend on it
		return nil, err
	}
	t := c.tools(on.Pool, on.Client)
	p := &discardPlan{discard: c, on: on, tools: t, scan: t.scan(on.Std, c.chosen, on.Whole)}
	err := p.scan.Each(ctx, func(d *replay.DeadLetter) error { p.deadLetters = append(p.deadLetters, d); return nil })
	p.scan.shown.Done()
	if err == nil {
		p.found, err = p.each(ctx, t.replayer(0).PlanDiscard)
	}
	if err == nil {
		err = p.findOthers(ctx)
	}
	return p, refused(err)
}

type discardPlan struct {
	*discard
	on          *change.On
	tools       *tools
	scan        *scan
	deadLetters []*replay.DeadLetter
	found       []readmodel.Discarded // the plan for each dead letter or, after Do, the results so far
	others      map[parkedEvent]bool  // see findOthers
	copies      map[parkedEvent]bool  // see findOthers
	instead     map[accountVersion]*replay.DeadLetter
	unread      output.Unread // partitions in which there may be more of these events
	failed      bool          // an error has ended Do
}

func (*discardPlan) DoneInParts() {}

// findOthers finds events that are parked instead of discarded ones. Only one event of a version is
// parked, so a consumer does not know the other events of the version. For each version whose
// parked event is discarded, another event is parked: the first one that can be read, or else the
// first one. Events with the id of an event that is or was discarded are left out, because the
// decision is about them, too.
func (p *discardPlan) findOthers(ctx context.Context) error {
	removed, discarded, ids := map[accountVersion]bool{}, map[parkedEvent]bool{}, map[accountVersion][]string{}
	filter := dlq.Filter{Projection: p.chosen.Filter.Projection, Group: p.chosen.Filter.Group}
	for i, d := range p.deadLetters {
		of := parkedEventOf(d)
		discarded[of] = true
		ids[of.accountVersion] = append(ids[of.accountVersion], d.Subject().EventID)
		if p.found[i].Removed {
			removed[of.accountVersion] = true
			filter.Account = of.account
		}
	}
	if len(removed) == 0 {
		return nil
	}
	if len(removed) > 1 {
		filter.Account = ""
	}
	p.others, p.copies, p.instead = map[parkedEvent]bool{}, map[parkedEvent]bool{}, map[accountVersion]*replay.DeadLetter{}
	statuses := []dlq.Status{dlq.Open, dlq.Ready, dlq.Waiting, dlq.Discarded}
	s := p.tools.scan(p.on.Std, replay.Selection{Filter: filter, Statuses: statuses}, false)
	s.Payload = true
	defer s.shown.Done()
	var found []*replay.DeadLetter
	err := s.Each(ctx, func(d *replay.DeadLetter) error {
		switch of := parkedEventOf(d); {
		case !removed[of.accountVersion] || discarded[of]:
		case d.Status == dlq.Discarded:
			ids[of.accountVersion] = append(ids[of.accountVersion], d.Subject().EventID)
		case d.Entry.Class != event.VersionConflict:
			found = append(found, d)
		}
		return nil
	})
	for _, d := range found {
		of := parkedEventOf(d)
		if slices.Contains(ids[of.accountVersion], d.Subject().EventID) {
			p.copies[of] = true
			continue
		}
		p.others[of] = true
		if first := p.instead[of.accountVersion]; first == nil || compareOthers(d, first) < 0 {
			p.instead[of.accountVersion] = d
		}
	}
	p.unread = s.unread
	return err
}

// compareOthers sorts events that can be read first. Events of one version may be in several partitions
// of the DLQ topic, which are not read in a fixed order.
func compareOthers(a, b *replay.DeadLetter) int {
	unreadable := func(d *replay.DeadLetter) int {
		if d.Parked().Class == event.VersionGap {
			return 0
		}
		return 1
	}
	x, y := &a.Entry, &b.Entry
	return cmp.Or(unreadable(a)-unreadable(b), cmp.Compare(x.DLQPartition, y.DLQPartition), cmp.Compare(x.DLQOffset, y.DLQOffset))
}

func (p *discardPlan) Hash(_ context.Context, h *change.Hash) error {
	for i, d := range p.deadLetters {
		h.Add(p.document(d, p.found[i], false))
	}
	return nil
}

func (p *discardPlan) Do(ctx context.Context) (err error) {
	p.found, err = p.each(ctx, p.tools.replayer(0).Discard)
	for i := range p.found {
		if !p.found[i].Passed {
			p.deadLetters[i].Status = dlq.Discarded
		}
	}
	p.failed = err != nil
	return err
}

// each calls the function do for all dead letters in chunks and returns the results. After an error
// it returns the results so far. If there is a plan, the function do gets what the plan has found.
func (p *discardPlan) each(
	ctx context.Context, do func(context.Context, []readmodel.Discard) ([]readmodel.Discarded, error),
) (all []readmodel.Discarded, err error) {
	planned := p.found != nil
	for letters := range slices.Chunk(p.deadLetters, replay.ChunkRecords) {
		list := make([]readmodel.Discard, len(letters))
		for i, d := range letters {
			list[i] = d.Discard(p.action(d))
			list[i].NotParked = planned && !p.found[len(all)+i].Removed
			if other := p.instead[parkedEventOf(d).accountVersion]; other != nil {
				list[i].Instead = other.Parked()
			}
		}
		found, err := do(ctx, list)
		if all = append(all, found...); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (p *discardPlan) action(d *replay.DeadLetter) readmodel.Action {
	a := d.Action(readmodel.ActionDiscard, p.on.Actor)
	a.Reason, a.Result = p.on.Reason, readmodel.ResultDiscarded
	return a
}

func (p *discardPlan) Print(ctx context.Context, done bool) error {
	p.announce(done)
	rows, now := letterRows(p.on.Std, &p.Flags), time.Now()
	for i := range p.found {
		rows.Add(p.document(p.deadLetters[i], p.found[i], done), letterCells(p.deadLetters[i], now)...)
	}
	if p.failed && rows.Len() == 0 {
		return nil
	}
	if err := rows.End(p.scan.emptyResult("nothing to discard")); err != nil || p.failed {
		return err
	}
	p.print(p.summary(done))
	if err := p.scan.finish(ctx, p.on.Std); err != nil {
		return err
	}
	if err := p.unread.Explain(p.on.Std); err != nil {
		p.on.Std.Notef("there may be other events of the same versions, which are not discarded: %s\n", err)
	}
	return nil
}

func (p *discardPlan) document(letter *replay.DeadLetter, found readmodel.Discarded, done bool) discardDocument {
	d := discardDocument{deadLetterDocument: document(letter), Parked: found.Removed}
	if other := p.instead[parkedEventOf(letter).accountVersion]; found.Removed && other != nil {
		d.ParkedInstead = new(placeOf(&other.Entry))
	}
	if done && !found.Passed {
		d.Result = output.OrNull(readmodel.ResultDiscarded)
	}
	return d
}

// print prints a text that only people read. With JSON output it goes to stderr.
func (p *discardPlan) print(text string) {
	if p.JSON() {
		p.on.Std.Notef("%s", text)
	} else {
		p.on.Std.Printf("%s", text)
	}
}

// announce prints a warning if the plan has no filter, because such a plan discards all dead
// letters that are neither resolved nor discarded.
func (p *discardPlan) announce(done bool) {
	if done || p.filters() || len(p.deadLetters) == 0 {
		return
	}
	p.print(fmt.Sprintf("no filter is given: this is every dead letter of topic %s that is neither resolved nor discarded, %d in all (filters: --account, --class, --until …)\n",
		p.DeadLetterTopic(), len(p.deadLetters)))
}

// effectText explains the effect of a discard on accounts.
const effectText = "An account that needs one of these events stays at the version before it. It is stale only while other events of it wait.\n" +
	"To apply them after all: projector dlq replay --status=discarded%s\n"

// othersText and copiesText explain what happens to the events that findOthers has found.
const othersText = "not discarded: %s of the same versions. One of each version %s parked instead.\n" +
	"Its account is stale until it is applied, or passed over. If it must not be applied either, discard it, too.\n"

const copiesText = "not discarded: %s with the id and version of a discarded event. Nothing applies it by itself, and no account is stale because of it.\n" +
	"Discard it, too, or apply it when its turn has come: projector dlq replay --status=ready%s\n"

// parkedEvent identifies a parked event. An event that was read several times has several dead
// letters and is parked once.
type parkedEvent struct {
	accountVersion
	record projection.RecordRef
}

type accountVersion struct {
	account string
	version int64
}

func parkedEventOf(d *replay.DeadLetter) parkedEvent {
	e := &d.Entry
	account, version, _ := e.Subject(&d.Decoded)
	return parkedEvent{accountVersion{account, version}, projection.RecordRef{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset}}
}

func (p *discardPlan) summary(done bool) string {
	passed, accounts, parked := 0, map[string]bool{}, map[parkedEvent]bool{}
	for i := range p.found {
		switch {
		case p.found[i].Passed:
			passed++
			continue
		case p.found[i].Removed:
			parked[parkedEventOf(p.deadLetters[i])] = true
		}
		if id := p.deadLetters[i].Entry.AccountID; id != "" {
			accounts[id] = true
		}
	}
	n, removed := len(p.found)-passed, len(parked)
	what := output.Counted(n, "dead letter") + " of " + output.Counted(len(accounts), "account")
	var text string
	switch {
	case done:
		text = "discarded " + what + "\n"
		if removed > 0 {
			text += fmt.Sprintf("parked events removed: %d; they are not applied when their turn comes\n", removed)
		}
	case n > 0:
		text = fmt.Sprintf("would discard %s; %s\n", what, p.on.NothingChanged())
		if removed > 0 {
			text = fmt.Sprintf("parked events that would be removed: %d; they would not be applied when their turn comes\n", removed) + text
		}
		if len(accounts) > 0 {
			text = fmt.Sprintf(effectText, p.again()) + text
		}
	}
	if others := len(p.others); others > 0 {
		verb := "would be"
		if done {
			verb = "is"
		}
		text += fmt.Sprintf(othersText, output.Counted(others, "other event"), verb)
	}
	if copies := len(p.copies); copies > 0 {
		text += fmt.Sprintf(copiesText, output.Counted(copies, "other record"), p.again())
	}
	if passed > 0 {
		text = fmt.Sprintf("not discarded, because the read model has passed their versions: %d\n", passed) + text
	}
	return text
}
