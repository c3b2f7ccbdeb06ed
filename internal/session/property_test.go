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

// The type source simulates the consumer that runs a session.
type source struct {
	t       *rapid.T
	session *session.Session
	db      *database
	records []projection.DecodedRecord
	begin   []int // index of the first event of each offset
	counted int   // number of records reported as durable
	outage  bool  // a failure was reported, but not yet its end
	unsaved int64 // the highest position of the failed flushes
}

// The method act handles a report as a consumer does. It returns false when all records must be
// read again.
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

// The method consume claims the partition and consumes until everything is durable or an error
// occurs.
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
	for rest := s.records[s.begin[pos.Next]:]; ; {
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

// entriesFrom returns n random records, some of them with several entries, and the index of the
// first entry of each record.
func entriesFrom(t *rapid.T, n int) (records []projection.DecodedRecord, begin []int) {
	several := rapid.Bool().Draw(t, "several entries")
	for _, r := range recordsFrom(0, n) {
		begin = append(begin, len(records))
		if !several || rapid.Bool().Draw(t, "one event") {
			records = append(records, r)
			continue
		}
		for entries := rapid.Int32Range(1, 5).Draw(t, "entries"); r.Record.Entry < entries; {
			r.Record.Entry++
			r.More = r.Record.Entry < entries
			records = append(records, r)
		}
	}
	return records, append(begin, len(records))
}

// TestEveryRecordIsDurableOnce checks the following properties under random failures. Each record
// with one event is applied or dead-lettered once, and is counted once if no record has several
// entries. Dead letters are published before the write. The position never passes an unprocessed
// record. After a failed flush of several events, the next flush has fewer events. For each outage,
// its end is reported. For a record with several entries, each entry is applied once, but a second
// read of the record counts and dead-letters its entries again.
func TestEveryRecordIsDurableOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := &database{applied: map[entry]int{}, deadLettered: map[entry]int{}, parked: rapid.IntRange(0, 60).Draw(t, "parked")}
		parked := db.parked
		p := &simulated{t: t, db: db, poison: map[entry]bool{}, refuse: map[entry]bool{}, published: map[entry]bool{}}
		n := rapid.IntRange(0, 150).Draw(t, "records")
		records, begin := entriesFrom(t, n)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 150), 0, 3).Draw(t, "poison") {
			if i < len(records) {
				p.poison[entry{records[i].Record.Offset, records[i].Record.Entry}] = true
			}
		}
		s := &source{t: t, db: db, records: records, begin: begin}
		s.session = session.New(p, p, session.Limits{
			Events: rapid.IntRange(1, 100).Draw(t, "events"), Within: time.Hour, Freely: rapid.IntRange(0, 2).Draw(t, "freely"),
		})
		for tries := 0; db.next < int64(n) || db.parked > 0 || s.outage || !s.session.OutcomeKnown(); tries++ {
			if p.calm = tries > 30; tries > 200 {
				t.Fatalf("no end: %+v", db)
			}
			s.consume()
		}
		for i := range records {
			r := &records[i].Record
			e := entry{r.Offset, r.Entry}
			want := []int{1, 0}
			if p.poison[e] {
				want = []int{0, 1}
			}
			got := []int{db.applied[e], db.deadLettered[e]}
			if r.Entry > 0 {
				got[1] = min(got[1], 1)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("record %v was applied and dead-lettered %v times, want %v", e, got, want)
			}
		}
		if got, want := fmt.Sprint(db.next, db.healed), fmt.Sprint(n, parked); got != want {
			t.Fatalf("position, healed: %s, want %s", got, want)
		}
		if len(records) == n && s.counted != n {
			t.Fatalf("%d records are counted, want %d", s.counted, n)
		}
	})
}

// TestFinal shows which errors are final: a refusal by PostgreSQL, and an error because another
// writer was first.
func TestFinal(t *testing.T) {
	for err, want := range map[error]bool{
		projection.ErrFenced: true, fmt.Errorf("write: %w", projection.ErrStale): true, refusal(): true, errAway: false, context.Canceled: false,
	} {
		if session.Final(err) != want {
			t.Errorf("%v: final is not %v", err, want)
		}
	}
}
