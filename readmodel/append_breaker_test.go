package readmodel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// TestAppendStopsWhereTheBreakerOpens: at the record at which a projection would open that
// takes in one at a time, although what is a duplicate, and does not count, is known only
// when it has been written.
func TestAppendStopsWhereTheBreakerOpens(t *testing.T) {
	pool, run := openPool(t), 0
	for _, kind := range []readmodel.Definition{statement.Definition(), turnover.Definition()} {
		t.Run(kind.Name(), rapid.MakeCheck(func(rt *rapid.T) {
			run++
			stopsWhereTheBreakerOpens(t, rt, pool, kind, fmt.Sprint("b", run))
		}))
	}
}

// opens is where the breaker has to open, and what was taken in until then.
func opens(topic []delivered, rule projection.BreakerRule, m *model) (at int) {
	var roots []bool
	for offset, d := range topic {
		before := m.counts
		m.deliver(offset, d)
		if m.counts[projection.Duplicate] > before[projection.Duplicate] {
			continue
		}
		root := m.counts[projection.DeadLettered] > before[projection.DeadLettered]
		if roots = append(roots, root); !root || len(roots) < rule.Window {
			continue
		}
		n := 0
		for _, r := range roots[len(roots)-rule.Window:] {
			if r {
				n++
			}
		}
		if float64(n) >= rule.Share*float64(rule.Window) {
			return offset
		}
	}
	return -1
}

func stopsWhereTheBreakerOpens(t *testing.T, rt *rapid.T, pool *pgxpool.Pool, kind readmodel.Definition, prefix string) {
	t.Helper()
	rule := projection.BreakerRule{Window: rapid.IntRange(2, 9).Draw(rt, "window"), Share: 0.5}
	topic := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) delivered {
		d := delivered{
			account: rapid.IntRange(0, 3).Draw(rt, "account"), version: rapid.IntRange(1, 4).Draw(rt, "version"),
			poison: rapid.IntRange(0, 3).Draw(rt, "poison") == 0,
		}
		if d.id = 10*d.account + d.version; rapid.IntRange(0, 9).Draw(rt, "conflict") == 0 {
			d.id += 5
		}
		return d
	}), 1, 40).Draw(rt, "topic")
	m := &model{taken: map[string]string{}, byVersion: kind.Name() == statement.Name}
	want := opens(topic, rule, m)

	k := kind.(readmodel.AppendDefinition)
	k.Recent = nil
	p := readmodel.Partition{Group: prefix, Topic: "events"}
	open := k.Open(readmodel.RunConfig{Pool: pool, FirstVersion: 1, InboxRetention: time.Hour, Breaker: rule, Observer: &counted{}})
	f := &feeder{t: t, format: jsonFormat(t), Projection: open(p), counts: map[string]int{}}
	f.claim(projection.NoOffset)
	records := f.decoded(prefix, topic)
	for int(f.next) < len(records) && !f.Pending().Open {
		rest := records[f.next:]
		chunk := rest[:rapid.IntRange(1, min(len(rest), 6)).Draw(rt, "chunk")]
		n, err := f.Fold(t.Context(), chunk, 1000)
		if err != nil {
			rt.Fatal(err)
		}
		f.next += int64(n)
		switch {
		case f.Pending().Open:
		case rapid.IntRange(0, 4).Draw(rt, "given up") == 0:
			f.claim(projection.NoOffset)
		case n < len(chunk) || int(f.next) == len(records) || rapid.Bool().Draw(rt, "flush"):
			f.flushOrClaim()
		}
	}
	if f.Pending().Open != (want >= 0) || want >= 0 && f.next != int64(want)+1 {
		rt.Fatalf("open %v behind %d records, want it at %d of %+v", f.Pending().Open, f.next, want, topic)
	}
	f.flushOrClaim()
	_, err := f.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
	var stopped *projection.StoppedError
	if errors.As(err, &stopped) != (want >= 0) || want >= 0 && stopped.Standing != projection.StandingBreaker {
		rt.Fatalf("claimed again: %v", err)
	}
	if counts := fmt.Sprint(m.counts[projection.Applied], m.counts[projection.Duplicate], 0, m.counts[projection.DeadLettered]); want >= 0 && f.outcomes() != counts {
		rt.Fatalf("applied, duplicate, ignored, dead-lettered: got %s, want %s", f.outcomes(), counts)
	}
}

// TestAConflictMakesWhatFollowsSuspect: a record that could be no dead letter when its chunk
// was begun is one after the first conflict, and the breaker still opens at it.
func TestAConflictMakesWhatFollowsSuspect(t *testing.T) {
	topic := []delivered{
		{account: 0, version: 1, id: 1},
		{account: 0, version: 2, id: 2},
		{account: 1, version: 1, id: 3},
		{account: 0, version: 1, id: 4, poison: true}, // conflicts
		{account: 2, version: 1, id: 5},
		{account: 2, version: 1, id: 6}, // conflicts with the one before it
		{account: 2, version: 2, id: 7},
	}
	rule, m := projection.BreakerRule{Window: 4, Share: 0.5}, &model{taken: map[string]string{}, byVersion: true}
	if want := opens(topic, rule, m); want != 5 {
		t.Fatalf("the oracle opens it at %d", want)
	}
	k := statement.Definition().(readmodel.AppendDefinition)
	k.Recent = nil
	open := k.Open(readmodel.RunConfig{Pool: openPool(t), FirstVersion: 1, InboxRetention: time.Hour, Breaker: rule, Observer: &counted{}})
	f := &feeder{t: t, format: jsonFormat(t), Projection: open(readmodel.Partition{Group: "g", Topic: "events"}), counts: map[string]int{}}
	f.claim(projection.NoOffset)
	records := f.decoded("x", topic)
	for int(f.next) < len(records) && !f.Pending().Open {
		n, err := f.Fold(t.Context(), records[f.next:], 1000)
		if err != nil {
			t.Fatal(err)
		}
		if f.next += int64(n); !f.Pending().Open {
			f.flushOrClaim()
		}
	}
	if f.next != 6 || !f.Pending().Open {
		t.Errorf("open %v behind %d records, want it behind 6", f.Pending().Open, f.next)
	}
}

func (f *feeder) decoded(prefix string, topic []delivered) []projection.DecodedRecord {
	records := make([]projection.DecodedRecord, len(topic))
	for i, d := range topic {
		r := &records[i]
		r.Record.Topic, r.Record.Offset, r.Record.Value = "events", int64(i), []byte(d.value(prefix))
		f.format.Decode(r.Record.Message, &r.Decoded)
	}
	return records
}

// flushOrClaim flushes or, when it is to be decided again, goes back.
func (f *feeder) flushOrClaim() {
	f.t.Helper()
	switch err := f.flush(); {
	case errors.Is(err, projection.ErrStale):
		f.claim(projection.NoOffset)
	case err != nil:
		f.t.Fatal(err)
	}
}
