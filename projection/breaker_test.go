package projection_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
)

// delivery is a record with the properties that matter to the breaker.
type delivery struct {
	class     event.Class // class of a dead letter
	waits     bool
	duplicate bool
	tombstone bool
}

func (d delivery) counts() bool {
	return !d.duplicate && !d.tombstone && (d.class != event.VersionGap || !d.waits)
}

func deliveries() *rapid.Generator[delivery] {
	return rapid.Custom(func(t *rapid.T) delivery {
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0, 1, 2:
			return delivery{class: rapid.SampledFrom(event.Classes()).Draw(t, "class"), waits: rapid.Bool().Draw(t, "waits")}
		case 3:
			return delivery{duplicate: true}
		case 4:
			return delivery{tombstone: true}
		}
		return delivery{}
	})
}

func feed(b *projection.Breaker, d delivery, offset int64, reprocessed bool) {
	r := projection.DecodedRecord{Record: projection.Record{Offset: offset}, Reprocessed: reprocessed}
	r.Decoded.Tombstone = d.tombstone
	switch {
	case d.class != "":
		b.DeadLettered(&r, projection.Decision{Outcome: projection.DeadLettered, Class: d.class, Message: "why"}, d.waits)
	case d.tombstone:
		b.Passed(&r, projection.Ignored)
	case d.duplicate:
		b.Passed(&r, projection.Duplicate)
	default:
		b.Passed(&r, projection.Applied)
	}
}

// opensAt computes the offset at which a breaker must open, from the list of all records. The
// result is -1 if it must not open.
func opensAt(stream []delivery, rule projection.BreakerRule, through int64) int {
	var roots []bool
	for offset, d := range stream {
		if int64(offset) < through || !d.counts() {
			continue
		}
		roots = append(roots, d.class != "")
		if d.class == "" || len(roots) < rule.Window {
			continue
		}
		n := 0
		for _, root := range roots[len(roots)-rule.Window:] {
			if root {
				n++
			}
		}
		if float64(n) >= rule.Share*float64(rule.Window)-1e-9 {
			return offset
		}
	}
	return -1
}

// TestBreakerOpensWhereAListSays shows that the breaker opens at the record that opensAt returns.
// This also holds if records that are not durable yet are read again, for example after a restart.
func TestBreakerOpensWhereAListSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := projection.BreakerRule{Window: rapid.IntRange(1, 12).Draw(t, "window"), Share: float64(rapid.IntRange(1, 20).Draw(t, "share")) / 20}
		stream := rapid.SliceOfN(deliveries(), 0, 80).Draw(t, "stream")
		through := int64(rapid.IntRange(0, 20).Draw(t, "through"))
		want := opensAt(stream, rule, through)
		position := projection.Position{Breaker: projection.BreakerState{Through: through}}
		b := projection.NewBreaker(rule, 3, &position)
		for offset := 0; offset < len(stream); offset++ {
			feed(b, stream[offset], int64(offset), false)
			if open := b.Open(); open != (offset == want) {
				t.Fatalf("open: %v at offset %d, want it at %d", open, offset, want)
			}
			if b.Open() {
				return
			}
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0: // the records become durable
				position.Next = int64(offset) + 1
				position.Breaker = b.State(position.Breaker)
			case 1: // the records are read again, perhaps because of a restart
				b, offset = projection.NewBreaker(rule, 3, &position), int(position.Next)-1
			}
		}
		if want >= 0 {
			t.Fatalf("not open, want it at %d", want)
		}
	})
}

// TestBreakerStateSurvivesAnotherWindow shows that the latest records still count after the size of
// the window was changed, as far as they fit into the new window.
func TestBreakerStateSurvivesAnotherWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.SliceOfN(deliveries(), 0, 60).Draw(t, "stream")
		before, after := rapid.IntRange(1, 30).Draw(t, "before"), rapid.IntRange(1, 30).Draw(t, "after")
		never := func(n int) projection.BreakerRule { return projection.BreakerRule{Window: n, Share: 1} }
		var from projection.Position
		b, small := projection.NewBreaker(never(before), 0, &from), projection.NewBreaker(never(min(before, after)), 0, &from)
		for offset, d := range stream {
			feed(b, d, int64(offset), false)
			feed(small, d, int64(offset), false)
		}
		state := b.State(projection.BreakerState{})
		got := projection.NewBreaker(never(after), 0, &projection.Position{Breaker: state}).State(projection.BreakerState{})
		if want := small.State(projection.BreakerState{}); got.Window != want.Window {
			t.Fatalf("%x became %x, want %x", state.Window, got.Window, want.Window)
		}
	})
}

// TestBreakerIgnoresWhatItCannotRead shows that random bytes as the stored window do not open the
// breaker.
func TestBreakerIgnoresWhatItCannotRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "text"))
		b := projection.NewBreaker(projection.BreakerRule{Window: 5, Share: 1}, 0, &projection.Position{Breaker: projection.BreakerState{Window: text}})
		if b.Open() {
			t.Fatal("open")
		}
	})
}

// TestBreakerOfRecordsReadAgain shows that records are not counted a second time when they are read
// again.
func TestBreakerOfRecordsReadAgain(t *testing.T) {
	rule := projection.BreakerRule{Window: 10, Share: 0.5}
	b := projection.NewBreaker(rule, 0, &projection.Position{Next: 0})
	for offset := range int64(4) {
		feed(b, delivery{class: event.MalformedPayload}, offset, false)
	}
	counted := b.State(projection.BreakerState{})
	for offset := range int64(100) {
		feed(b, []delivery{{class: event.MalformedPayload}, {duplicate: true}, {}, {tombstone: true}}[offset%4], offset, true)
	}
	if now := b.State(projection.BreakerState{}); now != counted {
		t.Errorf("%+v became %+v: what is read again counts neither way", counted, now)
	}
	feed(b, delivery{}, 100, false)
	for offset := range int64(5) {
		feed(b, delivery{class: event.MalformedPayload}, 101+offset, false)
	}
	if !b.Open() {
		t.Error("not open in a storm after what was read again")
	}
}

func TestBreakerSaysWhatToDo(t *testing.T) {
	b := projection.NewBreaker(projection.BreakerRule{Window: 4, Share: 0.7}, 7, &projection.Position{})
	for offset, d := range []delivery{{}, {class: event.InvalidAmount}, {class: event.MalformedPayload}, {class: event.MalformedPayload}} {
		feed(b, d, int64(offset), false)
	}
	reason := b.State(projection.BreakerState{}).Reason
	for _, want := range []string{"3 of the last 4", "--breaker-share is 0.7", "2 of them malformed_payload (why)", "--format", "projector resume --partition=7", `"breaker open"`} {
		if !strings.Contains(reason, want) {
			t.Errorf("%q is missing in: %s", want, reason)
		}
	}
	for _, class := range event.Classes() {
		one := projection.NewBreaker(projection.BreakerRule{Window: 1, Share: 1}, 0, &projection.Position{})
		feed(one, delivery{class: class}, 0, false)
		if reason := one.State(projection.BreakerState{}).Reason; !strings.Contains(reason, string(class)) || len(reason) > 500 {
			t.Errorf("%s: %d bytes: %s", class, len(reason), reason)
		}
	}
}

// TestBreakerProposesCommandsOfItsReader expects that the proposed commands name the topic, the
// projection and the group of the reader that has stopped.
func TestBreakerProposesCommandsOfItsReader(t *testing.T) {
	b := projection.NewBreaker(projection.BreakerRule{
		Window: 1, Share: 1, Reader: " --topic=bank --projection=daily_turnover --group=g2", Letters: " --dlq-topic=dead",
	}, 7, &projection.Position{})
	feed(b, delivery{class: event.UnsupportedCurrency}, 0, false)
	reason := b.State(projection.BreakerState{}).Reason
	for _, want := range []string{
		"projector resume --partition=7 --topic=bank --projection=daily_turnover --group=g2 --reason=TEXT --yes",
		"projector dlq replay --class=unsupported_currency --topic=bank --projection=daily_turnover --group=g2 --dlq-topic=dead --yes",
	} {
		if !strings.Contains(reason, want) {
			t.Errorf("%q is missing in: %s", want, reason)
		}
	}
}

// TestBreakerNamesWhoCanEndTheStorm shows that the message names neither --format nor the schema
// registry if amounts are wrong, because changing these would not help.
func TestBreakerNamesWhoCanEndTheStorm(t *testing.T) {
	f, err := event.New(event.FormatJSON, event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const float = `{"eventId":"e1","eventType":"FundsCredited","accountId":"a","version":1,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":10.25,"currency":"EUR"}}`
	var decoded event.Decoded
	f.Decode(event.Message{Value: []byte(float)}, &decoded)
	_, dead := projection.Account{}.Apply(&decoded, false)
	for _, tt := range []struct {
		name       string
		registry   bool
		decision   projection.Decision
		says, hush []string
	}{
		{"float", true, dead, []string{`docs/repairs.md, "Very many dead letters"`}, []string{"--format", "registry"}},
		{"amount", false, projection.Decision{Class: event.InvalidAmount}, []string{`docs/repairs.md, "Very many dead letters"`}, []string{"--format", "registry"}},
		{"json", false, projection.Decision{Class: event.MalformedPayload, Message: "not JSON"}, []string{"--format"}, []string{"registry"}},
		{"avro", true, projection.Decision{Class: event.MalformedPayload, Message: "no schema"}, []string{"--format", "registry"}, nil},
	} {
		b := projection.NewBreaker(projection.BreakerRule{Window: 1, Share: 1, Registry: tt.registry}, 0, &projection.Position{})
		b.DeadLettered(&projection.DecodedRecord{}, tt.decision, false)
		reason := b.State(projection.BreakerState{}).Reason
		for _, want := range tt.says {
			if !strings.Contains(reason, want) {
				t.Errorf("%s: %q is missing in: %s", tt.name, want, reason)
			}
		}
		for _, not := range tt.hush {
			if strings.Contains(reason, not) {
				t.Errorf("%s: %q is in: %s", tt.name, not, reason)
			}
		}
	}
}

func TestBreakerIsOff(t *testing.T) {
	for _, rule := range []projection.BreakerRule{{}, {Window: 10}, {Share: 1}} {
		b := projection.NewBreaker(rule, 0, &projection.Position{})
		for offset := range int64(50) {
			feed(b, delivery{class: event.MalformedPayload}, offset, false)
		}
		if b.Open() {
			t.Errorf("%+v: open", rule)
		}
		if state := b.State(projection.BreakerState{Window: "old", Through: 7}); state != (projection.BreakerState{Through: 7}) {
			t.Errorf("%+v: keeps %+v", rule, state)
		}
	}
}

// BenchmarkBreaker measures the counting of applied records, because nearly all records are
// applied.
func BenchmarkBreaker(b *testing.B) {
	for _, rule := range []projection.BreakerRule{{}, {Window: 1000, Share: 0.5}} {
		b.Run(fmt.Sprint("share=", rule.Share), func(b *testing.B) {
			breaker := projection.NewBreaker(rule, 0, &projection.Position{})
			var r projection.DecodedRecord
			for b.Loop() {
				r.Record.Offset++
				breaker.Passed(&r, projection.Applied)
			}
		})
	}
}

// TestBreakerOpensAfterTheRecord shows that the breaker opens only after the last entry of a
// record. So the other entries of the record are still processed.
func TestBreakerOpensAfterTheRecord(t *testing.T) {
	for _, last := range []delivery{{}, {duplicate: true}, {tombstone: true}, {class: event.InvalidAmount}} {
		b := projection.NewBreaker(projection.BreakerRule{Window: 2, Share: 1}, 0, &projection.Position{})
		broken := projection.DecodedRecord{More: true}
		for range 3 {
			b.DeadLettered(&broken, projection.Decision{Outcome: projection.DeadLettered, Class: event.InvalidAmount}, false)
			if b.Open() || b.State(projection.BreakerState{}).Reason != "" {
				t.Fatal("open within a record")
			}
		}
		feed(b, last, 0, false)
		if !b.Open() || b.State(projection.BreakerState{}).Reason == "" {
			t.Errorf("not open behind a record that ends with %+v", last)
		}
	}
}

// TestBreakerCountsTheSoundEntries reads records of ten entries, of which the last one is refused by
// PostgreSQL. After the flush of the others, each record is read again, and these are duplicates.
func TestBreakerCountsTheSoundEntries(t *testing.T) {
	const entries = 10
	pos := projection.Position{}
	rule := projection.BreakerRule{Window: 100, Share: 0.5}
	for offset := range int64(500) {
		record := func(entry int) *projection.DecodedRecord {
			return &projection.DecodedRecord{Record: projection.Record{Offset: offset}, More: entry < entries-1}
		}
		outcome := projection.Applied
		for range 2 {
			b := projection.NewBreaker(rule, 0, &pos)
			for entry := range entries - 1 {
				b.Passed(record(entry), outcome)
			}
			if outcome == projection.Duplicate {
				b.DeadLettered(record(entries-1), projection.Decision{Outcome: projection.DeadLettered, Class: event.RejectedByDatabase}, false)
				pos.Next = offset + 1
			}
			pos.Breaker = b.State(pos.Breaker)
			outcome = projection.Duplicate
		}
		if pos.Breaker.Reason != "" {
			t.Fatalf("open after %d records, although a tenth is dead-lettered: %s", offset+1, pos.Breaker.Reason)
		}
	}
}

// TestBreakerOfARecordReadAgain expects that the entries of a record count once. The position is
// before the record until all of its entries are written. When a flush of some entries is written
// and the record is read again, these entries come again.
func TestBreakerOfARecordReadAgain(t *testing.T) {
	rule := projection.BreakerRule{Window: 10, Share: 0.5}
	entry := func(b *projection.Breaker, offset int64, more bool) {
		r := projection.DecodedRecord{Record: projection.Record{Offset: offset}, More: more}
		b.DeadLettered(&r, projection.Decision{Outcome: projection.DeadLettered, Class: event.RejectedByDatabase}, false)
	}
	pos := projection.Position{Next: 10}
	b := projection.NewBreaker(rule, 0, &pos)
	for offset := range int64(10) {
		feed(b, delivery{}, offset, false)
	}
	pos.Breaker = b.State(pos.Breaker)
	for entries := 1; entries <= 4; entries++ {
		for range entries {
			entry(b, 10, true)
			pos.Breaker = b.State(pos.Breaker)
		}
		if b.Open() || pos.Breaker.Reason != "" {
			t.Fatalf("open after %d entries", entries)
		}
		b = projection.NewBreaker(rule, 0, &pos)
	}
	for range 3 {
		entry(b, 10, true)
	}
	entry(b, 10, false)
	pos.Breaker = b.State(pos.Breaker)
	if b = projection.NewBreaker(rule, 0, &pos); pos.Breaker.Reason != "" {
		t.Fatal("open after 4 entries")
	}
	entry(b, 11, false)
	if !b.Open() {
		t.Error("not open after 5 dead letters of 10 records")
	}
}

// TestBreakerStoresAHealThatFailsWithinARecord lets a parked event fail between the entries of a
// record. If the event comes from an earlier record, it is not read again with this one, so the stored
// window must contain it. An event of the same record is read again, and counts then.
func TestBreakerStoresAHealThatFailsWithinARecord(t *testing.T) {
	for parkedAt, want := range map[int64]bool{5: true, 10: false} {
		pos := projection.Position{Next: 10}
		b := projection.NewBreaker(projection.BreakerRule{Window: 1, Share: 1}, 3, &pos)
		first := projection.DecodedRecord{Record: projection.Record{Partition: 3, Offset: 10}, More: true}
		b.Passed(&first, projection.Applied)
		parked := projection.Record{Partition: 3, Offset: parkedAt}
		b.HealFailed(&parked, projection.Decision{Outcome: projection.DeadLettered, Class: event.CurrencyMismatch})
		one := projection.BreakerState{Window: b.State(pos.Breaker).Window}
		// A window with one root dead letter is the only one that is longer than its number of records.
		if stored := len(one.Window) > 1; stored != want {
			t.Errorf("the failed heal of offset %d is in the stored window: %v, want %v", parkedAt, stored, want)
		}
	}
}
