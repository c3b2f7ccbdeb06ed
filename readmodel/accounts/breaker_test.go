package accounts_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// breakerModel is a simple model of the breaker that processes one record at a time. For each
// account it holds the version and the parked events. For each counted record, it also holds
// whether the record was a root dead letter. A root dead letter is an event that cannot be applied,
// or the first event after a gap.
type breakerModel struct {
	versions map[string]int64
	parked   map[string]map[int64]bool // true if the event cannot be applied
	counted  []bool
}

// The method deliver processes a record and reports whether it counts as a root dead letter.
func (m *breakerModel) deliver(id string, version int64, poison bool) (root bool) {
	at, parked := m.versions[id], m.parked[id]
	if parked == nil {
		parked = map[int64]bool{}
		m.parked[id] = parked
	}
	if version <= at {
		return false
	}
	gap := version > at+1
	if poison || gap {
		if root = poison || len(parked) == 0; root {
			m.counted = append(m.counted, true)
		}
		// The first event of a version stays. A new event replaces it only if the new event can be
		// applied and the first one cannot.
		if cannot, taken := parked[version]; !taken || cannot && !poison {
			parked[version] = poison
		}
		return root
	}
	m.counted = append(m.counted, false)
	for at = version; ; at++ {
		delete(parked, at)
		if cannot, waits := parked[at+1]; cannot || !waits {
			break
		}
	}
	m.versions[id] = at
	return false
}

func (m *breakerModel) storm(rule projection.BreakerRule) bool {
	if len(m.counted) < rule.Window {
		return false
	}
	n := 0
	for _, root := range m.counted[len(m.counted)-rule.Window:] {
		if root {
			n++
		}
	}
	return float64(n) >= rule.Share*float64(rule.Window)
}

// TestFoldStopsWhereTheBreakerOpens shows that a Fold stops at the record that opens the breaker,
// for random chunks and flushes. The next record is not applied.
func TestFoldStopsWhereTheBreakerOpens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rule := projection.BreakerRule{Window: rapid.IntRange(2, 8).Draw(rt, "window"), Share: 0.5}
		db := newStore()
		d := newDriver(t, db, accounts.Options{FirstVersion: 1, ParkLimit: 100, CacheBytes: 1 << 20}, rapid.IntRange(1, 5).Draw(rt, "piece"))
		breaker := projection.NewBreaker(rule, 0, &projection.Position{})
		d.fold.CountedBy(breaker)
		m := breakerModel{versions: map[string]int64{}, parked: map[string]map[int64]bool{}}
		var records []projection.DecodedRecord
		opens := -1
		for i := range 60 {
			id := fmt.Sprint("a", rapid.IntRange(0, 3).Draw(rt, "account"))
			version := m.versions[id] + 1
			if rapid.IntRange(0, 3).Draw(rt, "version") == 0 {
				version = int64(rapid.IntRange(1, 8).Draw(rt, "any"))
			}
			poison := rapid.IntRange(0, 4).Draw(rt, "poison") == 0
			r := projection.DecodedRecord{Record: projection.Record{Offset: int64(i)}, Decoded: credited(id, version, 1)}
			if poison {
				r.Decoded.Fault = &event.Fault{Class: event.InvalidAmount, Reason: "no amount"}
			}
			records = append(records, r)
			if m.deliver(id, version, poison) && m.storm(rule) {
				opens = i
				break
			}
		}
		behind := projection.DecodedRecord{Record: projection.Record{Offset: 1000}, Decoded: credited("behind", 1, 1)}
		records = append(records, behind)
		folded := 0
		for folded < len(records) && !d.fold.Pending().Open {
			chunk := records[folded:min(len(records), folded+rapid.IntRange(1, 20).Draw(rt, "chunk"))]
			n, err := d.fold.Apply(t.Context(), chunk, math.MaxInt)
			if err != nil {
				rt.Fatal(err)
			}
			folded += n
			if rapid.Bool().Draw(rt, "flush") {
				d.flush()
			}
		}
		d.flush()
		want := len(records)
		if opens >= 0 {
			want = opens + 1
		}
		if open := d.fold.Pending().Open; folded != want || open != (opens >= 0) {
			rt.Fatalf("%d folded, open %v; want %d: %s", folded, open, want, text(records))
		}
		if _, applied := db.rows["behind"]; applied != (opens < 0) {
			rt.Fatalf("what comes after it is applied: %v", applied)
		}
		if n, err := d.fold.Apply(t.Context(), records[:1], math.MaxInt); opens >= 0 && (n != 0 || err != nil) {
			rt.Fatalf("folds %d more, %v", n, err)
		}
	})
}

func text(records []projection.DecodedRecord) string {
	var lines []string
	for i := range records {
		d := &records[i].Decoded
		lines = append(lines, fmt.Sprintf("%s/%d %v", d.Event.AccountID, d.Event.Version, d.Fault != nil))
	}
	return strings.Join(lines, ", ")
}
