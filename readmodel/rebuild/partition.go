package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/errclass"
	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/appended"
)

// partition rebuilds one partition. One goroutine at a time uses it.
type partition struct {
	build   *Build
	number  int32
	session *session.Session

	claimed  bool
	next     int64 // the durable position
	furthest int64 // the highest offset that was read
	counted  int64 // records before this offset have been counted
	records  []projection.DecodedRecord
	waiting  map[string]struct{} // accounts with versions to skip and at least one read record
	skipped  map[string]int64    // the last skipped version by account
	turn     bool                // a version to skip may be next; it is skipped before the next record is folded
}

// attemptWithin limits one transaction.
const attemptWithin = 60 * time.Second

// patience limits the attempts of a partition that makes no progress.
var patience = retry.Bound{Attempts: 7, Pause: 200 * time.Millisecond, Longest: 10 * time.Second, Passing: passing}

// advance brings the partition to the offset end. After a transient failure it tries again. The
// number of attempts without progress is limited.
func (p *partition) advance(ctx context.Context, end int64, observe func(int64)) error {
	for tries := patience.Begin(); p.next < end || !p.claimed; {
		before := p.next
		err := p.read(ctx, end, observe)
		if errors.Is(err, session.ErrAgain) {
			p.claimed = false
			continue
		}
		if err == nil {
			continue
		}
		if p.next > before {
			tries.Progress()
		}
		if !tries.Again(ctx, err) {
			return fmt.Errorf("partition %d at offset %d: %w", p.number, p.next, err)
		}
		p.claimed = false
	}
	return nil
}

// passing reports whether a failure may be transient.
func passing(err error) bool {
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) ||
		retry.Passing(err) || errclass.Registry(err) == errclass.Retry
}

// read reads records up to the offset end and writes their events. It returns session.ErrAgain if
// the pending records have to be read again.
func (p *partition) read(ctx context.Context, end int64, observe func(int64)) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	p.empty()
	if p.turn { // skipping failed in the last attempt
		if err := p.flush(ctx); err != nil {
			return err
		}
		p.turn = false
	}
	for record, err := range p.build.cfg.Source.Records(ctx, p.number, p.next, end) {
		if err != nil {
			return err
		}
		if err := p.decode(ctx, &record); err != nil {
			return err
		}
		if len(p.records) >= chunkRecords || p.turn {
			if err := p.fold(ctx); err != nil {
				return err
			}
			p.report(record.Offset+1, observe)
		}
	}
	if err := p.fold(ctx); err != nil {
		return err
	}
	p.session.Skip(projection.NextOffset{Offset: end, LeaderEpoch: projection.NoEpoch})
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.report(end, observe)
	return nil
}

// claim drops the pending records, claims the partition and continues at the durable position. If
// the partition is already claimed, it does nothing.
func (p *partition) claim(ctx context.Context) error {
	if p.claimed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	position, _, err := p.session.Claim(ctx, projection.Claim{
		Owner: "rebuild", TopicID: p.build.cfg.TopicID, LogStart: p.build.cfg.Starts[p.number], Committed: projection.NoOffset,
	})
	if err != nil {
		return err
	}
	p.session.Begin(position)
	p.next, p.claimed = position.Next, true
	return nil
}

func (p *partition) decode(ctx context.Context, record *projection.Record) error {
	format, err := p.build.cfg.Formats.Resolve(ctx, record.Message)
	if err != nil {
		return err
	}
	if record.Offset >= p.counted { // otherwise it is read again after a failed flush
		p.build.records.Add(1)
		p.counted = record.Offset + 1
	}
	begin := len(p.records)
	p.records = projection.AppendDecoded(p.records, *record, format)
	p.build.decisions.MarkDiscarded(p.records[begin:])
	for i := begin; i < len(p.records); i++ {
		p.decide(&p.records[i])
	}
	return nil
}

// decide marks an event that must not be applied, because its version was skipped or dlq replay
// applied another event with this version.
func (p *partition) decide(r *projection.DecodedRecord) {
	if r.Decoded.Identity != event.Identified {
		return
	}
	if !r.Discarded {
		p.decideReplayed(&r.Record, &r.Decoded)
	}
	p.decideSkipped(&r.Decoded)
}

// decideReplayed notes whether the topic has the event that dlq replay applied. It marks the event
// as faulty if dlq replay applied another event with this version.
func (p *partition) decideReplayed(record *projection.Record, d *event.Decoded) {
	ev := &d.Event
	for _, e := range p.build.replays[record.Ref()] {
		if e.isAbout(record, ev) {
			e.given = e.given && d.Fault == nil && ev.AccountID == e.accountID
		}
	}
	key := appended.Key{Text: ev.AccountID, Number: ev.Version}
	if p.build.altered[key] && d.Fault == nil {
		p.build.alteredSeen.Store(true)
	}
	place, chosen := p.build.chosen[key]
	if chosen && place != record.Ref() {
		d.Fault = &event.Fault{Class: event.MalformedPayload, Reason: "another event of this version was replayed"}
	}
}

// decideSkipped notes that the account has versions to skip, and marks an event with such a version
// as faulty.
func (p *partition) decideSkipped(d *event.Decoded) {
	skips := p.build.skips[d.Event.AccountID]
	if len(skips) == 0 {
		return
	}
	p.waiting[skips[0].AccountID] = struct{}{}
	for _, s := range skips {
		p.turn = p.turn || s.Version >= d.Event.Version && s.Version > p.skipped[s.AccountID]
		if s.Version == d.Event.Version {
			d.Fault = &event.Fault{Class: event.MalformedPayload, Reason: "this version was skipped"}
		}
	}
}

// fold folds the chunk. It writes the folded events when there are enough of them.
func (p *partition) fold(ctx context.Context) error {
	before := p.next
	for rest := p.records; len(rest) > 0; {
		n, err := p.session.Fold(ctx, rest)
		if err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) > 0 || p.session.Full() {
			if err := p.write(ctx); err != nil {
				return err
			}
		}
	}
	p.empty()
	if p.next == before && p.session.Pending().Bytes < flushBytes && !p.turn {
		return nil
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.turn = false // only after the flush, because a failed flush is tried again before the next record
	return nil
}

func (p *partition) empty() {
	clear(p.records)
	p.records = p.records[:0]
}

// flush writes the pending events, applies parked events that can be applied, and skips versions.
func (p *partition) flush(ctx context.Context) error {
	for more := true; more; {
		if err := p.write(ctx); err != nil {
			return err
		}
		var err error
		if more, err = p.session.Heal(ctx); err != nil {
			return err
		}
	}
	return p.skipAgain(ctx)
}

// write writes the pending events. After a failure, these events are decided again from the durable
// position.
func (p *partition) write(ctx context.Context) error {
	r := p.session.Flush(ctx)
	switch r.Outcome {
	case session.Written:
		p.next = r.Next.Offset
	case session.Refused:
		return session.ErrAgain
	case session.Overtaken, session.Failed, session.Stuck:
		return r.Err
	case session.Nothing, session.Confirmed, session.Dropped: // only a claim returns Confirmed and Dropped
	}
	return nil
}

var _ session.Driver = (*partition)(nil)

// Read implements session.Driver. After a failure the caller continues from the durable position.
func (*partition) Read(ctx context.Context, _ string, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	return fn(ctx)
}

// Publish implements session.Driver. It does nothing, because the consumers have published these
// dead letters before.
func (*partition) Publish(context.Context, int64, []projection.DeadLetter, func(context.Context) error) error {
	return nil
}

// skipAgain skips versions of the accounts in the field waiting, as long as they are the account's
// next ones.
func (p *partition) skipAgain(ctx context.Context) error {
	done := false
	for account := range p.waiting {
		left := false
		for _, s := range p.build.skips[account] {
			seen := s.Record.Topic == "" || s.Record.Partition != p.number || s.Record.Offset < p.next
			passed, err := p.build.skipAgain(ctx, s, seen)
			if err != nil {
				return err
			}
			done, left = done || passed, !passed
			if left {
				break
			}
			p.skipped[account] = s.Version
		}
		if !left {
			delete(p.waiting, account)
		}
	}
	if !done {
		return nil
	}
	p.claimed = false // the account in memory is out of date
	return p.claim(ctx)
}

// report calls observe with the number of offsets that were read in all partitions. Offsets that
// are read again do not count.
func (p *partition) report(next int64, observe func(int64)) {
	if next <= p.furthest {
		return
	}
	passed := p.build.passed.Add(next - p.furthest)
	if p.furthest = next; observe != nil {
		observe(passed)
	}
}
