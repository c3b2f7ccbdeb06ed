package projection_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
)

// TestFloorsChangeNoVerdict judges anything, conflicts and refused records among it,
// beside a fold that has no floors.
func TestFloorsChangeNoVerdict(t *testing.T) {
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
		opts := projection.FoldOptions{FirstVersion: 1, ParkLimit: 1000, CacheBytes: rapid.SampledFrom([]int{1 << 20, 0}).Draw(rt, "cache")}
		plain, floored := newDriver(t, newStore(), opts, 3), newDriver(t, newStore(), opts, 3)
		for i, decoded := range arriving {
			rec := projection.Record{Offset: int64(i)}
			for _, d := range []*driver{plain, floored} {
				d.judge(rec, decoded)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				plain.flush()
				floored.flush()
			case 1:
				floored.floors = floored.db.floors(1 << 20)
			case 2:
				place := projection.Place{Offset: int64(i + 1)}
				plain.fold.Reject(place, "refused")
				floored.fold.Reject(place, "refused")
			}
		}
		plain.settle()
		floored.settle()
		if got, want := fmt.Sprint(floored.counts), fmt.Sprint(plain.counts); got != want {
			rt.Fatalf("outcomes %s, without floors %s", got, want)
		}
		if got, want := classes(floored.letters), classes(plain.letters); !slices.Equal(got, want) {
			rt.Fatalf("dead letters %v, without floors %v", got, want)
		}
		if got, want := fmt.Sprint(floored.db.rows), fmt.Sprint(plain.db.rows); got != want {
			rt.Fatalf("accounts %s, without floors %s", got, want)
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

// TestFloorsSaveTheLookUp is what they are for.
func TestFloorsSaveTheLookUp(t *testing.T) {
	const accounts = 10_000
	floors := projection.NewFloors(1 << 20)
	for i := range accounts {
		if !floors.Add(account(i), 7, "event-7") {
			t.Fatalf("no room for account %d", i)
		}
	}
	fold := projection.NewFold(projection.FoldOptions{FirstVersion: 1, CacheBytes: 1 << 20})
	records := make([]projection.Judgeable, 0, 2*accounts)
	for i := range accounts {
		old, last := credited(account(i), 6, 1), credited(account(i), 7, 1)
		old.Event.ID, last.Event.ID = "event-6", "event-7"
		records = append(records, projection.Judgeable{Decoded: old}, projection.Judgeable{Decoded: last})
	}
	fold.Find(records, floors)
	if unread := fold.Unread(nil); len(unread) > 0 {
		t.Errorf("%d accounts have to be read to know duplicates", len(unread))
	}
	for i := range records {
		fold.JudgeFound(i, &records[i], false)
	}
	if n := fold.Duplicates(); n != len(records) {
		t.Errorf("%d of %d are duplicates", n, len(records))
	}

	fold.Find([]projection.Judgeable{
		{Decoded: credited(account(1), 8, 1)}, {Decoded: credited(account(2), 7, 1)}, {Decoded: credited("acc-new", 1, 1)},
	}, floors)
	if unread, want := fold.Unread(nil), []string{account(1), account(2), "acc-new"}; !slices.Equal(unread, want) {
		t.Errorf("%v have to be read, want %v", unread, want)
	}
}

// TestAFloorWithoutItsEvent is what a repair leaves that passed over a version nobody knew.
func TestAFloorWithoutItsEvent(t *testing.T) {
	floors := projection.NewFloors(1 << 20)
	floors.Add("a", 7, "")
	for version, unread := range map[int64]int{6: 0, 7: 0, 8: 1} {
		fold := projection.NewFold(projection.FoldOptions{FirstVersion: 1, CacheBytes: 1 << 20})
		fold.Find([]projection.Judgeable{{Decoded: credited("a", version, 1)}}, floors)
		if got := len(fold.Unread(nil)); got != unread {
			t.Errorf("version %d: %d accounts have to be read, want %d", version, got, unread)
		}
	}
}

// TestLessMemoryForgetsAtOnce has a fold remember in two turns, and then takes room away.
func TestLessMemoryForgetsAtOnce(t *testing.T) {
	fold := projection.NewFold(projection.FoldOptions{FirstVersion: 1, CacheBytes: 1 << 20})
	find := func(from, to int) {
		var records []projection.Judgeable
		for i := from; i < to; i++ {
			records = append(records, projection.Judgeable{Decoded: credited(account(i), 1, 1)})
		}
		fold.Find(records, nil)
		fold.LearnRest()
		for i := range records {
			fold.JudgeFound(i, &records[i], false)
		}
	}
	flush := func() {
		fold.Changes()
		fold.Flushed()
	}
	find(0, 3000) // enough for a turn
	flush()
	find(3000, 3010)
	flush()
	if !fold.Knows(account(1)) { // and touched with that
		t.Fatal("nothing is remembered")
	}
	fold.SetCacheBytes(128 << 10)
	if fold.Knows(account(2)) {
		t.Error("what was not touched is still in memory")
	}
	if !fold.Knows(account(1)) || !fold.Knows(account(3005)) {
		t.Error("what was touched is forgotten")
	}
}

func account(i int) string { return fmt.Sprintf("acc-%d", i) }

func TestFloorsKeepToTheirMemory(t *testing.T) {
	const limit = 1 << 20
	floors := projection.NewFloors(limit)
	n := 0
	for floors.Add(account(n), 1, "") {
		n++
	}
	if most := limit / 32; n > most || n < most/2 {
		t.Errorf("%d accounts in %d bytes", n, limit)
	}
}
