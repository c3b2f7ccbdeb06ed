package replay

import (
	"context"
	"slices"

	"projector/dlq"
	"projector/internal/outbox"
	"projector/projection/event"
	"projector/readmodel"
)

// Missing is a version that an account waits for, with the event that the outbox has for it.
type Missing struct {
	outbox.Version
	Event
	contradicted bool // the outbox has different events for it
}

// Fetch applies missing events from the producer's outbox.
type Fetch struct {
	Store   readmodel.Replayer
	Outbox  outbox.Outbox
	Formats event.Resolver
	By      readmodel.Action // has the actor and the reason for the audit trail

	Missing []*Missing // grouped by account, in the order of versions

	// Refused is the number of rows from the outbox in which no requested event can be used. Last
	// is the version of the event in the last such row, and Why is the reason. The account in Last
	// is empty if the event cannot be read.
	Refused int
	Last    outbox.Version
	Why     string
}

// Plan queries the outbox for the missing versions, and plans the returned events. The function
// shown, which may be nil, is called with the number of versions that were queried.
func (f *Fetch) Plan(ctx context.Context, shown func(done, total int64)) error {
	if len(f.Missing) == 0 { // people try their --outbox-url and --outbox-query then
		return f.ask(ctx, nil)
	}
	done := int64(0)
	for question := range slices.Chunk(f.Missing, outbox.AskAtOnce) {
		if err := f.ask(ctx, question); err != nil {
			return err
		}
		if done += int64(len(question)); shown != nil {
			shown(done, int64(len(f.Missing)))
		}
	}
	return f.events().plan(ctx, f.Store)
}

// ask queries the outbox for some versions. If their events are too large for one answer, ask sends
// several queries, one after the other.
func (f *Fetch) ask(ctx context.Context, question []*Missing) error {
	wanted := make([]outbox.Version, len(question))
	for i, m := range question {
		wanted[i], m.Plan = m.Version, PlanNotFound
	}
	for {
		answer, err := outbox.Fetch(ctx, f.Outbox, f.Formats, f.By, wanted)
		if err != nil {
			return err
		}
		n := len(answer.Asked)
		for _, m := range question[:n] {
			m.Record, m.contradicted = answer.Records[m.Version], answer.Contradicted[m.Version]
		}
		if answer.Refused > 0 {
			f.Refused, f.Last, f.Why = f.Refused+answer.Refused, answer.Last, answer.Why
		}
		if question, wanted = question[n:], wanted[n:]; len(question) == 0 {
			return nil
		}
	}
}

// Apply executes the plan. It sets the results even after an error.
func (f *Fetch) Apply(ctx context.Context, shown func(done, total int64)) error {
	return f.events().apply(ctx, f.Store, shown)
}

func (f *Fetch) events() (all events) {
	for _, m := range f.Missing {
		all = append(all, &m.Event)
	}
	return all
}

// Failed returns how many of the missing versions were neither applied now nor already applied
// before.
func (f *Fetch) Failed() int { return f.events().failed() }

// Digest is the SHA-256 of the key, value and headers of the event, in hex. In some formats a part
// of the event is in the headers or the key.
func (m *Missing) Digest() string {
	of := &m.Record.Record.Message
	return dlq.MessageDigest(of.Key, of.Value, of.Headers)
}

// Reason returns why the event is not applied. The result is empty if the event is applied, or if
// the outbox has none.
func (m *Missing) Reason() string {
	switch {
	case m.contradicted:
		return outbox.Contradiction
	case m.Record == nil:
		return ""
	}
	return m.Record.Decision.Message
}
