package session_test

import (
	"context"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
)

// entry identifies an event by its record and its entry number.
type entry struct {
	offset int64
	number int32
}

// database stores the committed state: how often each event was applied or dead-lettered.
type database struct {
	next, fence  int64
	applied      map[entry]int
	deadLettered map[entry]int
	parked       int // number of events that can be healed
	healed       int
}

// fate is the outcome of an attempt.
type fate string

const (
	fine     fate = "fine"
	failing  fate = "failing"       // nothing is written
	lost     fate = "answer lost"   // the write is committed, but the answer is an error
	stale    fate = "stale"         // another writer has changed the rows
	fenced   fate = "fenced"        // another owner has claimed the partition
	unsent   fate = "not published" // the broker does not answer
	unproven fate = "verify stale"  // another writer was first, before the dead letters were published
	noClaim  fate = "no claim"      // the claim fails and returns no row
	badClaim fate = "bad claim"     // the claim fails but returns the row
)

// simulated implements Projection with a database in memory, and Driver. It checks each call.
type simulated struct {
	t         *rapid.T
	db        *database
	poison    map[entry]bool // events that PostgreSQL refuses
	refuse    map[entry]bool // events that must be dead-lettered as refused
	fence     int64
	pending   []entry
	through   int64 // the position after the pending records
	healing   int   // number of pending parked events
	verified  bool  // Verify was called since the last change
	published map[entry]bool

	failedWith int  // number of events of the last flush if it failed; 0 if it was written
	calm       bool // no more failures are simulated
}

func (p *simulated) fate(of ...fate) fate {
	if p.calm || rapid.IntRange(0, 2).Draw(p.t, "fails") > 0 {
		return fine
	}
	return rapid.SampledFrom(of).Draw(p.t, "fate")
}

func (p *simulated) Claim(context.Context, projection.Claim) (projection.Position, error) {
	p.pending, p.healing, p.verified = nil, 0, false
	f := p.fate(noClaim, badClaim)
	if f == noClaim {
		return projection.Position{}, errAway
	}
	found := projection.FencedOffset{Next: p.db.next, Fence: p.db.fence}
	if f == badClaim {
		return projection.Position{Found: &found}, errAway
	}
	p.db.fence++
	p.fence, p.through = p.db.fence, p.db.next
	return projection.Position{Next: p.db.next, Fence: p.fence, Found: &found}, nil
}

func (p *simulated) Fold(_ context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	p.verified = false
	if len(records) == 0 {
		p.healing = min(limit, p.db.parked)
		return 0, nil
	}
	n := min(len(records), limit-len(p.pending))
	for i := range records[:n] {
		r := &records[i].Record
		p.pending = append(p.pending, entry{r.Offset, r.Entry})
		if r.Offset != p.through {
			p.t.Fatalf("the record %d is folded at %d", r.Offset, p.through)
		}
		if !records[i].More {
			p.through++
		}
	}
	return n, nil
}

func (p *simulated) Pending() projection.Pending {
	return projection.Pending{Events: len(p.pending) + p.healing, Healing: p.db.parked > p.healing}
}

func (p *simulated) DeadLetters() (letters []projection.DeadLetter) {
	for _, e := range p.pending {
		if p.refuse[e] {
			letters = append(letters, projection.DeadLetter{Class: event.RejectedByDatabase, Record: projection.Record{
				Offset: e.offset, Message: event.Message{Entry: e.number},
			}})
		}
	}
	return letters
}

func (p *simulated) Verify(context.Context) error {
	p.verified = true
	if p.fate(unproven) == unproven {
		return projection.ErrStale
	}
	return nil
}

func (*simulated) Read(ctx context.Context, _ string, fn func(context.Context) error) error {
	return fn(ctx)
}

func (p *simulated) Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error {
	if p.failedWith > 1 && p.Pending().Events >= p.failedWith {
		p.t.Fatalf("a flush of %d events follows one of %d that failed", p.Pending().Events, p.failedWith)
	}
	p.failedWith = p.Pending().Events
	if err := verify(ctx); err != nil {
		return err
	}
	if p.fate(unsent) == unsent {
		return errAway
	}
	for i := range letters {
		r := &letters[i].Record
		if r.Offset >= next {
			p.t.Fatalf("a dead letter at %d of the records before %d", r.Offset, next)
		}
		p.published[entry{r.Offset, r.Entry}] = true
	}
	return nil
}

func (p *simulated) Flush(_ context.Context, next projection.NextOffset) (projection.Flushed, error) {
	if !p.verified {
		p.t.Fatal("written without being verified")
	}
	if p.fence == p.db.fence && next.Offset != p.through {
		p.t.Fatalf("the position %d passes records that were not processed: %d", next.Offset, p.through)
	}
	flushed := projection.Flushed{Records: len(p.pending), Healed: p.healing}
	for _, e := range p.pending {
		if p.poison[e] && !p.refuse[e] {
			return flushed, refusal()
		}
	}
	f := p.fate(failing, lost, stale, fenced)
	switch f {
	case failing:
		return flushed, errAway
	case stale:
		return flushed, projection.ErrStale
	case fenced:
		p.db.fence++
		return flushed, projection.ErrFenced
	case fine, lost, unsent, unproven, noClaim, badClaim:
	}
	p.commit(next.Offset)
	if f == lost {
		return flushed, errAway
	}
	p.failedWith = 0
	return flushed, nil
}

func (p *simulated) commit(next int64) {
	for _, e := range p.pending {
		switch {
		case p.refuse[e]:
			if p.db.deadLettered[e]++; !p.published[e] {
				p.t.Fatalf("the dead letter of %v is durable and was not published", e)
			}
		case e.number > 0 && p.db.applied[e] > 0: // a duplicate, because the record was read again
		default:
			p.db.applied[e]++
		}
	}
	p.db.next = next
	p.db.parked, p.db.healed = p.db.parked-p.healing, p.db.healed+p.healing
	p.pending, p.healing = nil, 0
}

func (p *simulated) Refuse(string) bool {
	if len(p.pending) != 1 || !p.poison[p.pending[0]] {
		p.t.Fatalf("%v are refused, and not one poison event", p.pending)
	}
	again := p.refuse[p.pending[0]]
	p.refuse[p.pending[0]] = true
	return !again
}
