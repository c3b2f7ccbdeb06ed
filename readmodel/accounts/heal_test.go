package accounts_test

import (
	"math"
	"slices"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// TestAParkedEventThatCannotBeAppliedBecomesTheGap parks the versions 5 and 6. Version 5 cannot be
// applied when its turn comes, because it has another currency or because PostgreSQL refuses it.
// The event of version 5 is then dead-lettered again. Version 6 stays parked and is not
// dead-lettered again, also after a restart. Version 6 is applied when a person corrects or skips
// version 5.
func TestAParkedEventThatCannotBeAppliedBecomesTheGap(t *testing.T) {
	corrected := with(credited("a", 5, 100), func(e *event.Event) { e.ID = "corrected" })
	releases := map[string]struct {
		release func(*driver)
		balance int64
	}{
		"corrected": {func(d *driver) { d.feed(corrected) }, 117},
		"skipped": {func(d *driver) {
			if err := d.fold.Read(d.t.Context(), []string{"a"}); err != nil {
				d.t.Fatal(err)
			}
			if !d.fold.Skip("a", 5, "") {
				d.t.Error("version 5 is not the next one")
			}
			d.healAll()
		}, 17},
	}
	for _, class := range []event.Class{event.CurrencyMismatch, event.RejectedByDatabase} {
		for name, c := range releases {
			for _, restart := range []bool{false, true} {
				d := newDriver(t, newStore(), accounts.Options{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, 10)
				fifth := credited("a", 5, 9)
				if class == event.CurrencyMismatch {
					fifth.Event.Currency = yen
				}
				d.feed(credited("a", 1, 1), credited("a", 2, 2), credited("a", 3, 3), fifth, credited("a", 6, 7))
				if class == event.RejectedByDatabase {
					d.refuseWhenHealed(credited("a", 4, 4))
				}
				if got := d.feed(credited("a", 4, 4)); !slices.Equal(got, []event.Class{class}) {
					t.Errorf("%s, %s: dead letters %v", class, name, got)
				}
				a := d.db.account("a")
				if a.Account.Version != 4 || a.Parked != 2 || a.NextParked != 5 || a.NextClass != class || d.fold.Pending().Healing {
					t.Errorf("%s, %s: %+v, healing %t", class, name, a, d.fold.Pending().Healing)
				}
				if restart {
					d = d.restarted()
				}
				d.letters = nil
				d.feed(credited("a", 4, 4))
				c.release(d)
				if row := d.db.rows["a"]; len(d.letters) > 0 || row.Version != 6 || row.Balance != c.balance {
					t.Errorf("%s, %s: %d more dead letters, %+v", class, name, len(d.letters), row)
				}
			}
		}
	}
}

// refuseWhenHealed applies an event alone, and then the parked event after it, which PostgreSQL
// refuses.
func (d *driver) refuseWhenHealed(decoded event.Decoded) {
	d.t.Helper()
	if _, err := d.fold.Apply(d.t.Context(), []projection.DecodedRecord{{Record: projection.Record{Offset: 5}, Decoded: decoded}}, 1); err != nil {
		d.t.Fatal(err)
	}
	d.flush()
	if err := d.fold.Heal(d.t.Context(), 1); err != nil {
		d.t.Fatal(err)
	}
	if !d.fold.Refuse("refused: 23514") {
		d.t.Error("refused before")
	}
	d.fold.Reset()
}

// TestTheHighestVersion parks the event with the highest version. It is applied when the version
// before it arrives, also after a restart. No version follows it, so a later conflict expects none.
func TestTheHighestVersion(t *testing.T) {
	const last = projection.LastVersion
	for _, restart := range []bool{false, true} {
		db := newStore()
		db.first = last - 2
		d := newDriver(t, db, accounts.Options{FirstVersion: last - 2, ParkLimit: 10, CacheBytes: 1 << 20}, 10)
		d.feed(credited("a", last-2, 1), credited("a", last, 4))
		if restart {
			d = d.restarted()
		}
		d.feed(credited("a", last-1, 2))
		if a := db.account("a"); a.Account.Version != last || a.Account.Balance != 7 || a.Parked != 0 || d.fold.Pending().Healing {
			t.Fatalf("restart %t: %+v, healing %t", restart, a, d.fold.Pending().Healing)
		}
		d.letters = nil
		classes := d.feed(credited("a", last, 4), with(credited("a", last, 8), func(e *event.Event) { e.ID = "another" }))
		if !slices.Equal(classes, []event.Class{event.VersionConflict}) || d.letters[0].Expected != nil || db.rows["a"].Balance != 7 {
			t.Errorf("restart %t: %v, %+v", restart, classes, d.letters)
		}
		if d.fold.Skip("a", math.MinInt64, "") {
			t.Errorf("restart %t: a version after the highest was skipped", restart)
		}
	}
}
