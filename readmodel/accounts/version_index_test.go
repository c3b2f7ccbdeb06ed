package accounts_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// TestAnIndexChangesNoDecision folds random events, including conflicts and refused records, with
// and without an index. The decisions must be the same.
func TestAnIndexChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		arriving := deliveries(rt, validStream(rt))
		for i := range arriving {
			switch rapid.IntRange(0, 19).Draw(rt, "changed") {
			case 0:
				arriving[i] = faulty(arriving[i], event.InvalidAmount)
			case 1:
				arriving[i] = with(arriving[i], func(e *event.Event) { e.ID += "-other" })
			case 2:
				arriving[i].Skip = true
			}
		}
		opts := accounts.Options{FirstVersion: 1, ParkLimit: 1000, CacheBytes: rapid.SampledFrom([]int{1 << 20, 0}).Draw(rt, "cache")}
		plain, indexed := newDriver(t, newStore(), opts, 3), newDriver(t, newStore(), opts, 3)
		for i, decoded := range arriving {
			rec := projection.Record{Offset: int64(i)}
			for _, d := range []*driver{plain, indexed} {
				d.apply(rec, decoded)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				plain.flush()
				indexed.flush()
			case 1:
				indexed.db.versions = indexed.db.index(1 << 20)
			case 2:
				for _, d := range []*driver{plain, indexed} { // the last folded event is refused
					d.fold.Refuse("refused")
				}
			}
		}
		plain.healAll()
		indexed.healAll()
		if got, want := fmt.Sprint(indexed.counts), fmt.Sprint(plain.counts); got != want {
			rt.Fatalf("outcomes %s, without an index %s", got, want)
		}
		if got, want := classes(indexed.letters), classes(plain.letters); !slices.Equal(got, want) {
			rt.Fatalf("dead letters %v, without an index %v", got, want)
		}
		if got, want := fmt.Sprint(indexed.db.rows), fmt.Sprint(plain.db.rows); got != want {
			rt.Fatalf("accounts %s, without an index %s", got, want)
		}
	})
}

func classes(letters []projection.DeadLetter) []string {
	var list []string
	for _, l := range letters {
		list = append(list, fmt.Sprint(l.Record.Offset, l.Class))
	}
	slices.Sort(list)
	return list
}

// The function redelivered returns a fold over the accounts of db that has detected a redelivery.
func redelivered(t *testing.T, db *store) *accounts.Fold {
	t.Helper()
	fold := accounts.NewFold(accounts.Options{FirstVersion: 1, CacheBytes: 1 << 30}, db)
	for i := range 1024 { // these accounts are read only to find duplicates
		id := fmt.Sprintf("seen-%d", i)
		db.rows[id] = projection.Account{Version: 1, LastEventID: id + "/1"}
		if _, err := fold.Apply(t.Context(), []projection.DecodedRecord{{Decoded: credited(id, 1, 1)}}, math.MaxInt); err != nil {
			t.Fatal(err)
		}
	}
	db.read = nil
	return fold
}

// TestIndexedAccountsAreNotRead checks that accounts in the index are not read.
func TestIndexedAccountsAreNotRead(t *testing.T) {
	const many = 10_000
	db := newStore()
	fold := redelivered(t, db)
	for i := range many {
		db.rows[account(i)] = projection.Account{Version: 7, LastEventID: "event-7"}
	}
	db.versions = db.index(1 << 20)
	records := make([]projection.DecodedRecord, 0, 2*many)
	for i := range many {
		old, last := credited(account(i), 6, 1), credited(account(i), 7, 1)
		old.Event.ID, last.Event.ID = "event-6", "event-7"
		records = append(records, projection.DecodedRecord{Decoded: old}, projection.DecodedRecord{Decoded: last})
	}
	before := fold.Gather().Outcomes[projection.Duplicate]
	apply := func(records ...projection.DecodedRecord) {
		t.Helper()
		if _, err := fold.Apply(t.Context(), records, math.MaxInt); err != nil {
			t.Fatal(err)
		}
	}
	apply(records...)
	if len(db.read) > 0 {
		t.Errorf("%d accounts were read to know duplicates", len(db.read))
	}
	if n := fold.Gather().Outcomes[projection.Duplicate] - before; n != len(records) {
		t.Errorf("%d of %d are duplicates", n, len(records))
	}
	apply(projection.DecodedRecord{Decoded: credited(account(1), 8, 1)},
		projection.DecodedRecord{Decoded: credited(account(2), 7, 1)}, projection.DecodedRecord{Decoded: credited("acc-new", 1, 1)})
	if want := []string{account(1), account(2), "acc-new"}; !slices.Equal(db.read, want) {
		t.Errorf("%v were read, want %v", db.read, want)
	}
}

// TestAVersionWithoutItsEvent reads an account whose last event is unknown. This can happen if an
// operator skips a version.
func TestAVersionWithoutItsEvent(t *testing.T) {
	for version, read := range map[int64]int{6: 0, 7: 0, 8: 1} {
		db := newStore()
		fold := redelivered(t, db)
		db.rows["a"] = projection.Account{Version: 7}
		db.versions = db.index(1 << 20)
		if _, err := fold.Apply(t.Context(), []projection.DecodedRecord{{Decoded: credited("a", version, 1)}}, math.MaxInt); err != nil {
			t.Fatal(err)
		}
		if got := len(db.read); got != read {
			t.Errorf("version %d: %d accounts were read, want %d", version, got, read)
		}
	}
}

// TestLessMemoryForgetsAtOnce fills the cache with two generations of accounts and then reduces its
// size.
func TestLessMemoryForgetsAtOnce(t *testing.T) {
	db := newStore()
	fold := accounts.NewFold(accounts.Options{FirstVersion: 1, CacheBytes: 512 << 10}, db)
	find := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			db.rows[account(i)] = projection.Account{Version: 1}
			if _, err := fold.Apply(t.Context(), []projection.DecodedRecord{{Decoded: credited(account(i), 2, 1)}}, math.MaxInt); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush := func() {
		fold.Gather()
		fold.Flushed()
	}
	knows := func(i int) bool {
		t.Helper()
		db.read = nil
		find(i, i+1)
		return len(db.read) == 0
	}
	find(0, 4000) // enough for one generation
	flush()
	find(4000, 4010)
	flush()
	if !knows(1) { // this check also marks account 1 as used
		t.Fatal("nothing is remembered")
	}
	flush()
	fold.SetCacheBytes(128 << 10)
	if knows(2) {
		t.Error("what was not touched is still in memory")
	}
	if !knows(1) || !knows(4005) {
		t.Error("what was touched is forgotten")
	}
}

// TestAccountsThatFitAreReadOnce shows that no flush removes accounts while all of them fit into
// two thirds of the cache.
func TestAccountsThatFitAreReadOnce(t *testing.T) {
	db := newStore()
	fold := accounts.NewFold(accounts.Options{FirstVersion: 1, CacheBytes: 512 << 10}, db)
	const fitting = 2500
	for version := int64(2); version < 6; version++ {
		for i := range fitting {
			if version == 2 {
				db.rows[account(i)] = projection.Account{Version: 1}
			}
			if _, err := fold.Apply(t.Context(), []projection.DecodedRecord{{Decoded: credited(account(i), version, 1)}}, math.MaxInt); err != nil {
				t.Fatal(err)
			}
			if fold.Pending().Full {
				t.Fatalf("full at %d accounts", i)
			}
		}
		if read := len(db.read); read != fitting {
			t.Fatalf("%d accounts were read, want each once", read)
		}
		fold.Gather()
		fold.Flushed()
	}
}

func account(i int) string { return fmt.Sprintf("acc-%d", i) }

func TestAnIndexKeepsToItsMemory(t *testing.T) {
	const limit = 1 << 20
	index := accounts.NewVersionIndex(limit)
	n := 0
	for index.Add(account(n), 1, "") {
		n++
	}
	if most := limit / 32; n > most || n < most/2 {
		t.Errorf("%d accounts in %d bytes", n, limit)
	}
}
