package appended_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// TestAppendStopsWhereTheBreakerOpens shows that Fold stops at a record at which the breaker may
// open. The function opens computes these records from a simple model. A duplicate that only the
// write detects may count as a successful record. Other duplicates never count.
func TestAppendStopsWhereTheBreakerOpens(t *testing.T) {
	t.Parallel()
	pool, run := openPool(t), 0
	for _, kind := range []readmodel.Definition{statement.Definition(), turnover.Definition()} {
		t.Run(kind.Name(), rapid.MakeCheck(func(rt *rapid.T) {
			run++
			stopsWhereTheBreakerOpens(t, rt, pool, kind, fmt.Sprint("b", run))
		}))
	}
}

// opens returns the offsets at which the breaker may open, with the counts of the decisions up to
// each of these offsets. It also returns whether the breaker may stay closed.
func opens(topic []delivered, rule projection.BreakerRule, m *model) (at map[int][4]int, never bool) {
	at = map[int][4]int{}
	windows := map[string]bool{"": true} // all possible states of the window: R is a root dead letter, s is a successful record
	for offset, d := range topic {
		before := m.counts
		m.deliver(offset, d)
		next := map[string]bool{}
		for w := range windows {
			switch {
			case m.counts[projection.DeadLettered] > before[projection.DeadLettered]:
				next[w+"R"] = true
			case m.counts[projection.Applied] > before[projection.Applied]:
				next[w+"s"] = true
			case d.poison: // a duplicate that must be detected before the write
				next[w] = true
			default:
				next[w], next[w+"s"] = true, true
			}
		}
		clear(windows)
		for w := range next {
			w = w[max(0, len(w)-rule.Window):]
			if storm := float64(strings.Count(w, "R")) >= rule.Share*float64(rule.Window); storm && len(w) == rule.Window && strings.HasSuffix(w, "R") {
				at[offset] = m.counts
			} else {
				windows[w] = true
			}
		}
	}
	return at, len(windows) > 0
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
	m := &model{stored: map[string]string{}, byVersion: kind.Name() == statement.Name}
	want, never := opens(topic, rule, m)

	k := kind.(appended.Definition)
	k.Recent = nil
	p := readmodel.Partition{Group: prefix, Topic: "events"}
	opener := k.Open(readmodel.RunConfig{Pool: pool, FirstVersion: 1, InboxRetention: time.Hour, Breaker: rule, Observer: &counted{}})
	f := feederOn(t, opener(p))
	records := decoded(f, prefix, topic)
	open := false
	for int(f.Next) < len(records) && !open {
		rest := records[f.Next:]
		chunk := rest[:rapid.IntRange(1, min(len(rest), 6)).Draw(rt, "chunk")]
		n, err := f.Fold(t.Context(), chunk, 1000)
		if err != nil {
			rt.Fatal(err)
		}
		f.Next += int64(n)
		switch {
		case rapid.IntRange(0, 4).Draw(rt, "given up") == 0:
			f.MustClaim(projection.NoOffset)
		case n < len(chunk) || f.Pending().Open || int(f.Next) == len(records) || rapid.Bool().Draw(rt, "flush"):
			open = f.Pending().Open
			open = flushOrClaim(t, f) && open
		}
	}
	opened := int(f.Next) - 1
	wanted, allowed := want[opened]
	if open && !allowed || !open && !never {
		rt.Fatalf("open %v after %d records, may open at %v, may stay closed %v: %+v", open, f.Next, want, never, topic)
	}
	_, err := f.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
	var stopped *projection.StoppedError
	if errors.As(err, &stopped) != open || open && stopped.Status != projection.StatusBreaker {
		rt.Fatalf("claimed again: %v", err)
	}
	if counts := fmt.Sprint(wanted[projection.Applied], wanted[projection.Duplicate], 0, wanted[projection.DeadLettered]); open && f.Outcomes() != counts {
		rt.Fatalf("applied, duplicate, ignored, dead-lettered: got %s, want %s", f.Outcomes(), counts)
	}
}

// TestAConflictBeforeADeadLetterInOneChunk has a record that becomes a dead letter only because of
// a conflict earlier in the same chunk. The breaker must still open at this record.
func TestAConflictBeforeADeadLetterInOneChunk(t *testing.T) {
	topic := []delivered{
		{account: 0, version: 1, id: 1},
		{account: 0, version: 2, id: 2},
		{account: 1, version: 1, id: 3},
		{account: 0, version: 1, id: 4, poison: true}, // conflicts with an earlier event
		{account: 2, version: 1, id: 5},
		{account: 2, version: 1, id: 6}, // conflicts with the event before it
		{account: 2, version: 2, id: 7},
	}
	rule, m := projection.BreakerRule{Window: 4, Share: 0.5}, &model{stored: map[string]string{}, byVersion: true}
	if want, never := opens(topic, rule, m); len(want) != 1 || want[5] == [4]int{} || never {
		t.Fatalf("the oracle opens it at %v", want)
	}
	k := statement.Definition().(appended.Definition)
	k.Recent = nil
	open := k.Open(readmodel.RunConfig{Pool: openPool(t), FirstVersion: 1, InboxRetention: time.Hour, Breaker: rule, Observer: &counted{}})
	f := feederOn(t, open(readmodel.Partition{Group: "g", Topic: "events"}))
	records := decoded(f, "x", topic)
	for int(f.Next) < len(records) && !f.Pending().Open {
		n, err := f.Fold(t.Context(), records[f.Next:], 1000)
		if err != nil {
			t.Fatal(err)
		}
		if f.Next += int64(n); !f.Pending().Open {
			flushOrClaim(t, f)
		}
	}
	if f.Next != 6 || !f.Pending().Open {
		t.Errorf("open %v behind %d records, want it behind 6", f.Pending().Open, f.Next)
	}
}

// TestKnownDuplicatesDoNotCount shows that duplicates found in the recent-event cache do not lower
// the share of dead letters.
func TestKnownDuplicatesDoNotCount(t *testing.T) {
	open := statement.Definition().Open(readmodel.RunConfig{
		Pool: openPool(t), FirstVersion: 1, CacheBytes: func() int { return 1 << 20 },
		Breaker: projection.BreakerRule{Window: 3, Share: 1}, Observer: &counted{},
	})
	f := feederOn(t, open(readmodel.Partition{Group: "g", Topic: "events"}))
	records := decoded(f, "x", []delivered{
		{id: 1, version: 1},
		{id: 2, version: 2, poison: true},
		{id: 3, version: 3, poison: true},
		{id: 1, version: 1},
		{id: 4, version: 4, poison: true},
	})
	for i := range records {
		if n, err := f.Fold(t.Context(), records[i:i+1], 10); n != 1 || err != nil {
			t.Fatalf("folded %d: %v", n, err)
		}
		f.Next++
		if open, last := f.Pending().Open, i == len(records)-1; open != last {
			t.Fatalf("open %v after record %d", open, i)
		}
		flushOrClaim(t, f)
	}
}

// decoded returns the decoded records of a topic.
func decoded(f *readmodeltest.Feeder, prefix string, topic []delivered) []projection.DecodedRecord {
	records := make([]projection.DecodedRecord, len(topic))
	for i, d := range topic {
		r := &records[i]
		r.Record.Topic, r.Record.Offset, r.Record.Value = "events", int64(i), []byte(d.value(prefix))
		f.Format.Decode(r.Record.Message, &r.Decoded)
	}
	return records
}

// flushOrClaim flushes. If the batch must be decided again, it claims the partition again and
// returns false.
func flushOrClaim(t *testing.T, f *readmodeltest.Feeder) bool {
	t.Helper()
	err := f.VerifyAndFlush()
	switch {
	case errors.Is(err, projection.ErrStale):
		f.MustClaim(projection.NoOffset)
	case err != nil:
		t.Fatal(err)
	}
	return err == nil
}
