package replay

import (
	"context"
	"slices"

	"projector/dlq"
	"projector/internal/outbox"
	"projector/projection/event"
)

// Missing is a version that an account waits for, and the event of it that the outbox has.
type Missing struct {
	outbox.Version
	Event
}

// Fetch applies missing events from the producer's outbox.
type Fetch struct {
	Store         Applier
	Outbox        outbox.Outbox
	Formats       event.Resolver
	Actor, Reason string // for the audit trail

	Missing []*Missing // of each account in the order of its versions

	// Refused are the events that the outbox returned and that are not applied, of them the
	// version of the last, without an account when it cannot be read, and the reason.
	Refused int
	Last    outbox.Version
	Why     string
}

// Plan queries the outbox for the missing versions, and plans what it returns. shown, which may be
// nil, is called with how many were asked for.
func (f *Fetch) Plan(ctx context.Context, shown func(done, total int64)) error {
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

// ask queries for some versions, and for those again that were in a part of the answer that was too large.
func (f *Fetch) ask(ctx context.Context, question []*Missing) error {
	for _, m := range question {
		m.Plan = PlanNotFound
	}
	for whole := false; !whole; {
		var wanted []outbox.Version
		for _, m := range question {
			if m.Record == nil {
				wanted = append(wanted, m.Version)
			}
		}
		if len(wanted) == 0 {
			return nil
		}
		answer, err := outbox.Fetch(ctx, f.Outbox, f.Formats, wanted)
		if err != nil {
			return err
		}
		for _, m := range question {
			if r := answer.Records[m.Version]; r != nil {
				m.Record = r
			}
		}
		if answer.Refused > 0 {
			f.Refused, f.Last, f.Why = f.Refused+answer.Refused, answer.Last, answer.Why
		}
		whole = answer.Whole
	}
	return nil
}

// Apply applies what was planned and sets the results, also when it fails.
func (f *Fetch) Apply(ctx context.Context, shown func(done, total int64)) error {
	for _, m := range f.Missing {
		if m.Record != nil {
			outbox.Stamp(m.Record, f.Actor, f.Reason)
		}
	}
	return f.events().apply(ctx, f.Store, shown)
}

func (f *Fetch) events() (all events) {
	for _, m := range f.Missing {
		all = append(all, &m.Event)
	}
	return all
}

// Failed counts the versions that their accounts still wait for.
func (f *Fetch) Failed() (n int) {
	for _, m := range f.Missing {
		if m.failed() {
			n++
		}
	}
	return n
}

// Digest is SHA-256 of the key, the value and the headers of the event that is applied, in hex: with
// some formats the headers or the key say what it is.
func (m *Missing) Digest() string {
	of := &m.Record.Record.Message
	return dlq.MessageDigest(of.Key, of.Value, of.Headers)
}

// Reason is why the event is not applied; empty: it is, or there is none.
func (m *Missing) Reason() string {
	if m.Record == nil {
		return ""
	}
	return m.Record.Decision.Message
}
