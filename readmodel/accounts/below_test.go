package accounts_test

import (
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// An account whose versions begin below the first version waits, unless a later version was applied
// before. With the right first version, it then gets the balance of all events.
func TestAnAccountWaitsForAVersionBelowTheFirst(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const first = 2
		stream := validStream(rt)
		arriving := deliveries(rt, stream)
		waits, begun := map[string]bool{}, map[string]bool{}
		for i := range arriving {
			ev := &arriving[i].Event
			switch {
			case ev.Version < first:
				arriving[i] = faulty(arriving[i], event.MalformedPayload)
				waits[ev.AccountID] = waits[ev.AccountID] || !begun[ev.AccountID]
			case ev.Version == first:
				begun[ev.AccountID] = !waits[ev.AccountID]
			}
		}
		db := newStore()
		db.first = first
		opts := accounts.Options{FirstVersion: first, ParkLimit: rapid.SampledFrom([]int64{1000, 0}).Draw(rt, "park limit"), CacheBytes: 1 << 20}
		d := run(t, rt, db, arriving, opts)
		for id := range cleanPass(stream) {
			_, exists := db.rows[id]
			if known := db.account(id); exists == waits[id] || waits[id] && (known.NextParked != 1 || known.Account.Version != 0) {
				rt.Fatalf("account %s: a row: %t, should wait: %t; %+v", id, exists, waits[id], known)
			}
		}
		for _, l := range d.letters {
			if below := l.Received < first; below != (l.Class == event.MalformedPayload) || l.Identified != (l.Expected != nil) {
				rt.Fatalf("dead letter %+v", l)
			}
		}
		if d.counts[projection.Duplicate]+d.counts[projection.Applied]+d.counts[projection.DeadLettered] != len(arriving) {
			rt.Fatalf("%v of %d records", d.counts, len(arriving))
		}

		db.first, opts.FirstVersion = 1, 1
		run(t, rt, db, stream, opts)
		for id, state := range cleanPass(stream) {
			if waits[id] && db.rows[id] != state {
				rt.Fatalf("account %s: %+v, want %+v", id, db.rows[id], state)
			}
		}
	})
}
