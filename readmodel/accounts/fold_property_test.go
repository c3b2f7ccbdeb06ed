package accounts_test

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

var (
	euro, _ = event.CurrencyByCode("EUR")
	yen, _  = event.CurrencyByCode("JPY")
)

func credited(account string, version, amount int64) event.Decoded {
	return event.Decoded{Identity: event.Identified, Event: event.Event{
		ID: fmt.Sprintf("%s/%d", account, version), AccountID: account, Version: version,
		Type: event.TypeNamed("FundsCredited"), Amount: amount, Currency: euro, OccurredAt: version,
	}}
}

func faulty(d event.Decoded, class event.Class) event.Decoded {
	d.Fault = &event.Fault{Class: class, Reason: "broken on purpose"}
	return d
}

// validStream draws the complete history of a few accounts. Each history is in version order, and
// the histories are interleaved.
func validStream(t *rapid.T) []event.Decoded {
	var stream []event.Decoded
	next := map[string]int64{}
	for range rapid.IntRange(1, 80).Draw(t, "events") {
		account := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "account")
		next[account]++
		d := credited(account, next[account], rapid.Int64Range(1, 1000).Draw(t, "amount"))
		if rapid.Bool().Draw(t, "debit") {
			d.Event.Type = event.TypeNamed("FundsDebited")
		}
		stream = append(stream, d)
	}
	return stream
}

// cleanPass computes the expected result of the history without the code under test.
func cleanPass(stream []event.Decoded) map[string]projection.Account {
	balances, states := map[string]*big.Int{}, map[string]projection.Account{}
	for _, d := range stream {
		ev := d.Event
		if balances[ev.AccountID] == nil {
			balances[ev.AccountID] = new(big.Int)
		}
		amount := big.NewInt(ev.Amount)
		if ev.Type == event.TypeNamed("FundsDebited") {
			amount.Neg(amount)
		}
		balances[ev.AccountID].Add(balances[ev.AccountID], amount)
		states[ev.AccountID] = projection.Account{
			Version: ev.Version, Balance: balances[ev.AccountID].Int64(), Currency: euro,
			LastEventID: ev.ID, LastEventAt: ev.OccurredAt,
		}
	}
	return states
}

// The function deliveries draws an order of delivery. First, up to six parts of the stream are
// delivered, in order or shuffled. At the end the whole stream is delivered in order.
func deliveries(t *rapid.T, stream []event.Decoded) []event.Decoded {
	var arriving []event.Decoded
	for range rapid.IntRange(0, 6).Draw(t, "replays") {
		from := rapid.IntRange(0, len(stream)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(stream)).Draw(t, "to")
		part := append([]event.Decoded(nil), stream[from:to]...)
		if rapid.Bool().Draw(t, "shuffled") {
			part = rapid.Permutation(part).Draw(t, "order")
		}
		arriving = append(arriving, part...)
	}
	return append(arriving, stream...)
}

func run(tb testing.TB, t *rapid.T, db *store, arriving []event.Decoded, opts accounts.Options) *driver {
	tb.Helper()
	d := newDriver(tb, db, opts, rapid.IntRange(1, 4).Draw(t, "piece"))
	for i, decoded := range arriving {
		value := make([]byte, 100*(1+decoded.Event.Version%3))
		d.apply(projection.Record{Offset: int64(i), Message: event.Message{Value: value}}, decoded)
		switch rapid.IntRange(0, 9).Draw(t, "then") {
		case 0, 1:
			d.flush()
		case 2: // the process dies and another one starts at the last flush
			d.flush()
			d.fold.Reset()
		case 3: // the fold gets an index of the versions in the database
			db.versions = db.index(rapid.IntRange(0, 1<<20).Draw(t, "bytes of the index"))
		}
	}
	d.healAll()
	return d
}

func TestAnyDeliveryEndsLikeOneCleanPass(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stream := validStream(rt)
		want := cleanPass(stream)
		db := newStore()
		opts := accounts.Options{
			FirstVersion: 1,
			ParkLimit:    rapid.SampledFrom([]int64{1000, 3, 0}).Draw(rt, "park limit"),
			ParkBytes:    rapid.SampledFrom([]int64{0, 1000, 300, 1}).Draw(rt, "park bytes"),
			CacheBytes:   rapid.SampledFrom([]int{1 << 20, 0}).Draw(rt, "cache"),
		}
		d := run(t, rt, db, deliveries(rt, stream), opts)
		for id, state := range want {
			if db.rows[id] != state {
				rt.Fatalf("account %s: %+v, want %+v", id, db.rows[id], state)
			}
			if left := db.above(id, 0, 1000); len(left) > 0 {
				rt.Fatalf("account %s is at its last version and %d events are still parked", id, len(left))
			}
		}
		if len(db.rows) != len(want) {
			rt.Fatalf("%d accounts, want %d", len(db.rows), len(want))
		}
		for _, l := range d.letters {
			if l.Class != event.VersionGap {
				rt.Fatalf("a valid stream gave a dead letter of class %s", l.Class)
			}
		}
	})
}

func TestAGapIsNeverApplied(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stream := validStream(rt)
		gap := rapid.IntRange(0, len(stream)-1).Draw(rt, "gap")
		missing := stream[gap].Event
		var rest []event.Decoded
		for _, d := range deliveries(rt, stream) {
			if d.Event.ID != missing.ID {
				rest = append(rest, d)
			}
		}
		db := newStore()
		run(t, rt, db, rest, accounts.Options{FirstVersion: 1, ParkLimit: 1000, CacheBytes: 1 << 20})
		row, exists := db.rows[missing.AccountID]
		if missing.Version == 1 && exists {
			rt.Fatalf("account %s has a row though its first event never came", missing.AccountID)
		}
		if missing.Version > 1 && row.Version != missing.Version-1 {
			rt.Fatalf("account %s is at %d, its event %d never came", missing.AccountID, row.Version, missing.Version)
		}
	})
}

func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		arriving := deliveries(rt, validStream(rt))
		for i := range arriving {
			if rapid.IntRange(0, 9).Draw(rt, "poison") == 0 {
				arriving[i] = faulty(arriving[i], event.InvalidAmount)
			}
		}
		d := run(t, rt, newStore(), arriving, accounts.Options{FirstVersion: 1, ParkLimit: 1000, CacheBytes: 1 << 20})
		total := 0
		for _, n := range d.counts {
			total += n
		}
		if total != len(arriving) {
			rt.Fatalf("%d outcomes for %d records", total, len(arriving))
		}
		if len(d.letters) < d.counts[projection.DeadLettered] {
			rt.Fatalf("%d dead-lettered records, %d letters", d.counts[projection.DeadLettered], len(d.letters))
		}
	})
}

// Events are delivered in random orders and with random flushes. At the end, the parked events of
// an account do not have more bytes than the limit.
func TestNoMoreIsParkedThanTheLimitAllows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stream := validStream(rt)
		var arriving []event.Decoded
		for _, d := range deliveries(rt, stream) {
			if d.Event.Version == 1 {
				continue // this event never comes, so all later ones wait
			}
			if rapid.IntRange(0, 4).Draw(rt, "poison") == 0 {
				d = faulty(d, event.InvalidAmount)
			}
			arriving = append(arriving, d)
		}
		limit := rapid.SampledFrom([]int64{1000, 300, 1}).Draw(rt, "park bytes")
		db := newStore()
		run(t, rt, db, arriving, accounts.Options{FirstVersion: 1, ParkLimit: 1000, ParkBytes: limit, CacheBytes: 1 << 20})
		for id := range db.parked {
			if parked := db.account(id).ParkedBytes; parked > limit {
				rt.Fatalf("account %s: %d bytes are parked, the limit is %d", id, parked, limit)
			}
		}
	})
}

// TestTheParkLimitIsExceededOnlyIfEnoughEventsWait delivers one event of each waiting version, because
// a second one may count once more (docs/decisions/0010). The correction of a broken event is delivered
// when it is the account's next one.
func TestTheParkLimitIsExceededOnlyIfEnoughEventsWait(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version, waiting, most := map[string]int64{}, map[string]map[int64]bool{}, map[string]int{} // waiting: can it be applied
		var drawn, arriving []event.Decoded
		for _, d := range validStream(rt) {
			if rapid.IntRange(0, 3).Draw(rt, "poison") == 0 {
				drawn = append(drawn, faulty(d, event.InvalidAmount))
			}
			drawn = append(drawn, d)
			if rapid.Bool().Draw(rt, "swapped") {
				last := len(drawn) - 1
				other := max(0, last-rapid.IntRange(1, 6).Draw(rt, "with"))
				drawn[other], drawn[last] = drawn[last], drawn[other]
			}
		}
		for _, d := range drawn {
			id, v, poison := d.Event.AccountID, d.Event.Version, d.Fault != nil
			if waiting[id] == nil {
				waiting[id] = map[int64]bool{}
			}
			if _, waits := waiting[id][v]; waits && (poison || v != version[id]+1) {
				continue
			}
			arriving = append(arriving, d)
			if v > version[id] {
				waiting[id][v] = !poison
			}
			for waiting[id][version[id]+1] {
				version[id]++
				delete(waiting[id], version[id])
			}
			most[id] = max(most[id], len(waiting[id]))
		}
		limit, db := rapid.Int64Range(1, 4).Draw(rt, "park limit"), newStore()
		run(t, rt, db, arriving, accounts.Options{FirstVersion: 1, ParkLimit: limit, CacheBytes: 1 << 20})
		for id := range db.over {
			if int64(most[id]) <= limit {
				rt.Fatalf("account %s is beyond the park limit %d, but only %d of its events waited", id, limit, most[id])
			}
		}
	})
}

// TestWhenChangesAreWrittenDoesNotMatter delivers any events, also two different ones of a version. The
// rows, the parked events and the dead letters are the same as if every record were written at once.
func TestWhenChangesAreWrittenDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var arriving []event.Decoded
		for i := range rapid.IntRange(1, 40).Draw(rt, "records") {
			d := credited(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "account"), rapid.Int64Range(1, 8).Draw(rt, "version"), 1)
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0, 1:
				d = faulty(d, event.InvalidAmount)
			case 2:
				d.Event.Currency = yen
			case 3:
				d.Event.ID = fmt.Sprint("other", i)
			case 4:
				d.Event.Amount = 1 << 62 // the second one exceeds the largest balance
			case 5:
				d.Event.Type, d.Event.Currency, d.Event.Amount = event.Ignorable, event.Currency{}, 0
			}
			arriving = append(arriving, d)
		}
		result := func(then func(*driver)) string {
			d := newDriver(t, newStore(), accounts.Options{FirstVersion: 1, ParkLimit: 1000, CacheBytes: 1 << 20}, 2)
			for i, decoded := range arriving {
				d.apply(projection.Record{Offset: int64(i)}, decoded)
				then(d)
			}
			d.healAll()
			letters, parked := map[string]int{}, map[string]string{}
			for _, l := range d.letters {
				letters[fmt.Sprint(l.Record.Offset, " ", l.Class)]++
			}
			for id, versions := range d.db.parked {
				for v, p := range versions {
					parked[fmt.Sprint(id, "/", v)] = fmt.Sprint(p.Record.Offset, " ", p.Class)
				}
			}
			return fmt.Sprintf("rows %v\nparked %v\ndead letters %v", d.db.rows, parked, letters)
		}
		want := result((*driver).healAll)
		got := result(func(d *driver) {
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				d.flush()
			case 1:
				d.healAll()
			case 2:
				d.flush()
				d.fold.Reset()
			}
		})
		if got != want {
			rt.Fatalf("written now and then:\n%s\nwritten after each record:\n%s", got, want)
		}
	})
}
