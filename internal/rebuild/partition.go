package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
)

// partition rebuilds one partition. One goroutine at a time uses it.
type partition struct {
	build  *Build
	number int32
	proj   Projection

	claimed  bool
	next     int64 // durable
	furthest int64 // how far it has been read at any time
	limit    int   // events a transaction; lowered to isolate a refused row
	records  []projection.Judgeable
	waiting  map[string]struct{} // accounts seen that have versions to pass over
	replays  map[int64]Replay    // by offset, those not found to be as the topic has them
}

// errAgain ends a session: what is pending is dropped, and the records are read again
// from the durable position.
var errAgain = errors.New("read again from the durable position")

const (
	// attempts without progress are made before giving up.
	attempts = 6
	// firstPause is half the wait before the second of them; each is twice the last.
	firstPause = 100 * time.Millisecond
	// attemptWithin bounds one transaction.
	attemptWithin = 60 * time.Second
)

// advance brings the partition to an offset. A failure that may pass is tried again
// for as long as there is some progress.
func (p *partition) advance(ctx context.Context, end int64, observe func(int64)) error {
	for failed := 0; p.next < end || !p.claimed; {
		before := p.next
		err := p.session(ctx, end, observe)
		if err == nil || errors.Is(err, errAgain) {
			continue
		}
		if p.next > before {
			failed = 0
		}
		if failed++; ctx.Err() != nil || !passing(err) || failed > attempts {
			return fmt.Errorf("partition %d at offset %d: %w", p.number, p.next, err)
		}
		p.claimed = false
		if err := pause(ctx, firstPause<<failed); err != nil {
			return err
		}
	}
	return nil
}

// passing reports whether the same may work at the next try.
func passing(err error) bool {
	class := errclass.Postgres(err)
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) ||
		class == errclass.Retry || class == errclass.RetryReset || errclass.Registry(err) == errclass.Retry
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// session reads and writes until the end, or until something makes what is pending
// worthless.
func (p *partition) session(ctx context.Context, end int64, observe func(int64)) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	p.empty()
	for record, err := range p.build.cfg.Source.Records(ctx, p.number, p.next, end) {
		if err != nil {
			return err
		}
		if err := p.take(ctx, &record); err != nil {
			return err
		}
		if len(p.records) == chunkRecords {
			if err := p.judge(ctx); err != nil {
				return err
			}
			p.tell(record.Offset+1, observe)
		}
	}
	if err := p.judge(ctx); err != nil {
		return err
	}
	if err := p.flush(ctx, at(end)); err != nil {
		return err
	}
	p.tell(end, observe)
	return nil
}

// claim makes the projection forget what is pending and go on at the durable position.
func (p *partition) claim(ctx context.Context) error {
	if p.claimed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	position, err := p.proj.Claim(ctx, projection.Claim{
		Owner: "rebuild", TopicID: p.build.cfg.TopicID, LogStart: p.build.cfg.Starts[p.number], Committed: projection.NoOffset,
	})
	if err != nil {
		return err
	}
	p.next, p.claimed = position.Next, true
	return nil
}

// take decodes a record and adds it to the chunk.
func (p *partition) take(ctx context.Context, record *projection.Record) error {
	format, err := p.build.cfg.Formats.Resolve(ctx, record.Message)
	if err != nil {
		return err
	}
	p.build.records.Add(1)
	p.records = append(p.records, projection.Judgeable{Record: *record})
	j := &p.records[len(p.records)-1]
	format.Decode(record.Message, &j.Decoded)
	d := &j.Decoded
	if r, replayed := p.replays[record.Offset]; replayed && reproducible(&r, d) {
		delete(p.replays, record.Offset)
	}
	if d.Identity != event.Identified {
		return nil
	}
	skips := p.build.skips[d.Event.AccountID]
	if len(skips) == 0 {
		return nil
	}
	p.waiting[skips[0].AccountID] = struct{}{}
	for i := range skips {
		if skips[i].Version == d.Event.Version {
			d.Fault = &event.Fault{Class: event.MalformedPayload, Reason: "this version was passed over on purpose"}
		}
	}
	return nil
}

// reproducible reports whether the record, as the topic has it, can be what was applied.
func reproducible(r *Replay, d *event.Decoded) bool {
	return d.Identity == event.Identified && d.Fault == nil && d.Event.AccountID == r.AccountID &&
		r.Class != event.CurrencyMismatch && r.Class != event.BalanceOverflow
}

// judge folds the chunk, and writes when enough has been folded.
func (p *partition) judge(ctx context.Context) error {
	for rest := p.records; len(rest) > 0; {
		n, err := p.proj.Judge(ctx, rest, p.limit)
		if err != nil {
			return err
		}
		if n > 0 {
			next := rest[n-1].Record.Next()
			if rest = rest[n:]; p.full() {
				if err := p.flush(ctx, next); err != nil {
					return err
				}
			}
			continue
		}
		// An account that has to heal first leaves no room for a record.
		if err := p.flush(ctx, at(rest[0].Record.Offset)); err != nil {
			return err
		}
	}
	p.empty()
	return nil
}

// empty drops the chunk.
func (p *partition) empty() {
	clear(p.records)
	p.records = p.records[:0]
}

// at is an offset without the leader epoch before it.
func at(offset int64) projection.NextOffset {
	return projection.NextOffset{Offset: offset, LeaderEpoch: projection.NoEpoch}
}

func (p *partition) full() bool {
	pending := p.proj.Pending()
	return pending.Events >= p.limit || pending.Bytes >= flushBytes
}

// flush makes what is pending durable, heals what can heal, and passes over what is
// to be passed over.
func (p *partition) flush(ctx context.Context, next projection.NextOffset) error {
	if err := p.write(ctx, next); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = p.proj.Heal(ctx, p.limit); err != nil {
			return err
		}
		if p.proj.Pending().Events > 0 {
			if err := p.write(ctx, next); err != nil {
				return err
			}
		}
	}
	return p.passOver(ctx)
}

func (p *partition) write(ctx context.Context, next projection.NextOffset) error {
	pending := p.proj.Pending().Events
	if pending == 0 && next.Offset == p.next {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	changes := *p.proj.Changes()
	err := p.proj.Write(ctx, next, &changes)
	if err != nil && errclass.Postgres(err) == errclass.Isolate {
		return p.isolate(err, pending)
	}
	if err != nil {
		return err
	}
	p.next, p.limit = next.Offset, min(2*p.limit, flushEvents)
	return nil
}

// isolate finds the event that PostgreSQL refuses, as a consumer does.
func (p *partition) isolate(err error, pending int) error {
	p.claimed = false
	if pending > 1 {
		p.limit = max(1, pending/2)
		return errAgain
	}
	p.limit = 1
	if !p.proj.Reject("PostgreSQL refused the row: " + errclass.Safe(err)) {
		return fmt.Errorf("an event judged as refused is still refused: %w", err)
	}
	return errAgain
}

// passOver passes over the versions whose turn has come, of the accounts seen.
func (p *partition) passOver(ctx context.Context) error {
	done := false
	for account := range p.waiting {
		left := false
		for i := range p.build.skips[account] {
			s := &p.build.skips[account][i]
			seen := !s.Known() || s.Place.Partition != p.number || s.Place.Offset < p.next
			passed, err := p.build.cfg.PassOver(ctx, s, seen)
			if err != nil {
				return err
			}
			done, left = done || passed, !passed
			if left {
				break
			}
		}
		if !left {
			delete(p.waiting, account)
		}
	}
	if !done {
		return nil
	}
	p.claimed = false // what is remembered of the account is no longer so
	return p.claim(ctx)
}

// tell reports progress; what is read again does not count.
func (p *partition) tell(next int64, observe func(int64)) {
	if next <= p.furthest {
		return
	}
	passed := p.build.passed.Add(next - p.furthest)
	if p.furthest = next; observe != nil {
		observe(passed)
	}
}
