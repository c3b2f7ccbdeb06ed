package session_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"projector/internal/session"
	"projector/projection"
)

// source is the loop around a session.
type source struct {
	t       *rapid.T
	session *session.Session
	db      *database
	records []projection.DecodedRecord
	counted int   // records reported as durable
	outage  bool  // something failed and is not reported as over
	unsaved int64 // up to where the flushes that failed were to make everything durable
}

// act acts on a report; false when everything is to be decided again.
func (s *source) act(r session.Report) bool {
	switch r.Outcome {
	case session.Nothing:
		return true
	case session.Written, session.Confirmed:
		s.counted += r.Flushed.Records
		s.outage, s.unsaved = false, 0
		return true
	case session.Failed:
		s.outage = true
	case session.Stuck:
		s.t.Fatalf("stuck: %v", r.Err)
	case session.Refused, session.Overtaken, session.Dropped:
	}
	return false
}

func (s *source) flush() bool {
	next := s.session.Next().Offset
	if s.act(s.session.Flush(context.Background())) {
		return true
	}
	s.unsaved = max(s.unsaved, next)
	return false
}

// consume claims and consumes until everything is durable, or something fails.
func (s *source) consume() {
	pos, r, err := s.session.Claim(context.Background(), projection.Claim{})
	s.act(r)
	if err != nil {
		return
	}
	if s.session.Begin(pos) {
		if pos.Next < s.unsaved {
			s.t.Fatalf("at %d the outage is over, of flushes up to %d", pos.Next, s.unsaved)
		}
		s.outage = false
	}
	for rest := s.records[pos.Next:]; ; {
		healed, err := s.session.Heal(context.Background())
		if err != nil {
			s.t.Fatal(err)
		}
		if healed && !s.flush() {
			return
		}
		if len(rest) == 0 && !healed {
			s.flush()
			return
		}
		chunk := rest[:min(len(rest), rapid.IntRange(1, 40).Draw(s.t, "chunk"))]
		n, err := s.session.Fold(context.Background(), chunk)
		if err != nil {
			s.t.Fatal(err)
		}
		if rest = rest[n:]; n < len(chunk) || s.session.Full() || rapid.Bool().Draw(s.t, "flush") {
			if !s.flush() {
				return
			}
		}
	}
}

// TestEveryRecordIsDurableOnce whatever fails: each record is applied or dead-lettered once
// and counted once, dead letters are published first, the position passes no record that was
// not processed, after a failed flush the next is smaller, and an outage ends.
func TestEveryRecordIsDurableOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := &database{applied: map[int64]int{}, deadLettered: map[int64]int{}, parked: rapid.IntRange(0, 60).Draw(t, "parked")}
		parked := db.parked
		p := &simulated{t: t, db: db, poison: map[int64]bool{}, refuse: map[int64]bool{}, published: map[int64]bool{}}
		n := rapid.IntRange(0, 150).Draw(t, "records")
		for _, offset := range rapid.SliceOfN(rapid.Int64Range(0, 150), 0, 3).Draw(t, "poison") {
			p.poison[offset] = true
		}
		s := &source{t: t, db: db, records: recordsFrom(0, n)}
		s.session = session.New(p, p, session.Limits{
			Events: rapid.IntRange(1, 100).Draw(t, "events"), Within: time.Hour, Freely: rapid.IntRange(0, 2).Draw(t, "freely"),
		})
		for tries := 0; db.next < int64(n) || db.parked > 0 || s.outage || !s.session.OutcomeKnown(); tries++ {
			if p.calm = tries > 30; tries > 200 {
				t.Fatalf("no end: %+v", db)
			}
			s.consume()
		}
		for offset := range int64(n) {
			want := []int{1, 0}
			if p.poison[offset] {
				want = []int{0, 1}
			}
			if got := []int{db.applied[offset], db.deadLettered[offset]}; !slices.Equal(got, want) {
				t.Fatalf("record %d was applied and dead-lettered %v times, want %v", offset, got, want)
			}
		}
		if got, want := fmt.Sprint(s.counted, db.next, db.healed), fmt.Sprint(n, n, parked); got != want {
			t.Fatalf("counted, position, healed: %s, want %s", got, want)
		}
	})
}

// TestFinal: what PostgreSQL has refused, or another writer has overtaken, is not repeated.
func TestFinal(t *testing.T) {
	for err, want := range map[error]bool{
		projection.ErrFenced: true, fmt.Errorf("write: %w", projection.ErrStale): true, refusal(): true, errAway: false, context.Canceled: false,
	} {
		if session.Final(err) != want {
			t.Errorf("%v: final is not %v", err, want)
		}
	}
}
