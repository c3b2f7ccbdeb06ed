package projection_test

import (
	"math"
	"slices"
	"testing"

	"projector/projection"
	"projector/projection/event"
)

func newTestDriver(t *testing.T, parkLimit int64) *driver {
	t.Helper()
	return newDriver(t, newStore(), projection.FoldOptions{FirstVersion: 1, ParkLimit: parkLimit, CacheBytes: 1 << 20}, 2)
}

// feed judges the messages at offsets 0, 1, … and answers the letters' classes.
func (d *driver) feed(messages ...event.Decoded) []event.Class {
	d.t.Helper()
	before := len(d.letters)
	for i, m := range messages {
		d.judge(projection.Record{Offset: int64(i)}, m)
	}
	d.settle()
	var classes []event.Class
	for _, l := range d.letters[before:] {
		classes = append(classes, l.Class)
	}
	return classes
}

func with(d event.Decoded, change func(*event.Event)) event.Decoded {
	change(&d.Event)
	return d
}

func TestVerdicts(t *testing.T) {
	inYen := func(version int64) event.Decoded {
		return with(credited("a", version, 1), func(e *event.Event) { e.Currency = yen })
	}
	otherID := func(d event.Decoded) event.Decoded {
		return with(d, func(e *event.Event) { e.ID = "other" })
	}
	ofType := func(version int64, kind event.Type) event.Decoded {
		return with(credited("a", version, 0), func(e *event.Event) { e.Type, e.Currency = kind, event.Currency{} })
	}
	unread := event.Decoded{Fault: &event.Fault{Class: event.MalformedPayload, Reason: "not JSON"}}
	cases := map[string]struct {
		feed    []event.Decoded
		letters []event.Class
		version int64
		balance int64
	}{
		"in order":                      {[]event.Decoded{credited("a", 1, 5), credited("a", 2, 6)}, nil, 2, 11},
		"redelivered":                   {[]event.Decoded{credited("a", 1, 5), credited("a", 1, 5)}, nil, 1, 5},
		"late":                          {[]event.Decoded{credited("a", 1, 5), credited("a", 3, 1), credited("a", 2, 6)}, []event.Class{event.VersionGap}, 3, 12},
		"conflict":                      {[]event.Decoded{credited("a", 1, 5), otherID(credited("a", 1, 9))}, []event.Class{event.VersionConflict}, 1, 5},
		"older version, other id":       {[]event.Decoded{credited("a", 1, 5), credited("a", 2, 5), otherID(credited("a", 1, 9))}, nil, 2, 10},
		"mismatch is the hole":          {[]event.Decoded{credited("a", 1, 5), inYen(2), credited("a", 3, 1)}, []event.Class{event.CurrencyMismatch, event.VersionGap}, 1, 5},
		"poison, then the right one":    {[]event.Decoded{credited("a", 1, 5), faulty(credited("a", 2, 6), event.InvalidAmount), credited("a", 3, 1), credited("a", 2, 6)}, []event.Class{event.InvalidAmount, event.VersionGap}, 3, 12},
		"parked, fails at its turn":     {[]event.Decoded{credited("a", 1, 5), inYen(3), credited("a", 4, 1), credited("a", 2, 6)}, []event.Class{event.VersionGap, event.VersionGap, event.CurrencyMismatch}, 2, 11},
		"poison ahead stops healing":    {[]event.Decoded{credited("a", 1, 5), faulty(credited("a", 3, 1), event.UnknownEventType), credited("a", 4, 1), credited("a", 2, 6)}, []event.Class{event.UnknownEventType, event.VersionGap}, 2, 11},
		"first of two parked stays":     {[]event.Decoded{credited("a", 1, 5), credited("a", 3, 1), otherID(credited("a", 3, 100)), credited("a", 2, 6)}, []event.Class{event.VersionGap, event.VersionGap}, 3, 12},
		"poison of an applied version":  {[]event.Decoded{credited("a", 1, 5), faulty(credited("a", 1, 5), event.MalformedPayload)}, nil, 1, 5},
		"overflow":                      {[]event.Decoded{credited("a", 1, math.MaxInt64), credited("a", 2, 1)}, []event.Class{event.BalanceOverflow}, 1, math.MaxInt64},
		"unreadable holds nobody":       {[]event.Decoded{credited("a", 1, 5), unread, credited("a", 2, 1)}, []event.Class{event.MalformedPayload}, 2, 6},
		"tombstone":                     {[]event.Decoded{credited("a", 1, 5), {Tombstone: true}, credited("a", 2, 1)}, nil, 2, 6},
		"ignorable advances":            {[]event.Decoded{credited("a", 1, 5), ofType(2, event.Ignorable), credited("a", 3, 1)}, nil, 3, 6},
		"closed without currency":       {[]event.Decoded{ofType(1, event.AccountClosed), credited("a", 2, 1)}, nil, 2, 1},
		"currency fixed by first money": {[]event.Decoded{ofType(1, event.AccountOpened), credited("a", 2, 1), inYen(3)}, []event.Class{event.CurrencyMismatch}, 2, 1},
		"last version there is":         {[]event.Decoded{credited("a", math.MaxInt64, 1)}, []event.Class{event.VersionGap}, 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newTestDriver(t, 1000)
			if got := d.feed(c.feed...); !slices.Equal(got, c.letters) {
				t.Errorf("dead letters %v, want %v", got, c.letters)
			}
			if row := d.db.rows["a"]; row.Version != c.version || row.Balance != c.balance {
				t.Errorf("version %d and balance %d, want %d and %d", row.Version, row.Balance, c.version, c.balance)
			}
		})
	}
}

func TestOpenedAfterClosingOpensAgain(t *testing.T) {
	d := newTestDriver(t, 1000)
	kinds := []event.Type{event.AccountOpened, event.AccountClosed, event.FundsCredited, event.AccountOpened}
	want := []bool{false, true, true, false}
	for i, kind := range kinds {
		m := with(credited("a", int64(i+1), 1), func(e *event.Event) { e.Type = kind })
		d.feed(m)
		if got := d.db.rows["a"].Closed; got != want[i] {
			t.Errorf("after event %d closed is %t, want %t", i+1, got, want[i])
		}
	}
}

func TestLetterNamesWhatIsKnown(t *testing.T) {
	d := newTestDriver(t, 1000)
	gap := with(credited("a", 7, 1), func(e *event.Event) { e.CorrelationID = "c-1" })
	d.feed(credited("a", 1, 5), gap)
	l := d.letters[0]
	if l.AccountID != "a" || l.EventID != "a/7" || l.Received != 7 || l.Expected == nil || *l.Expected != 2 || l.CorrelationID != "c-1" {
		t.Errorf("letter %+v", l)
	}
}

func TestParkLimitOverflows(t *testing.T) {
	d := newTestDriver(t, 2)
	d.feed(credited("a", 1, 1), credited("a", 3, 1), credited("a", 4, 1), credited("a", 5, 1))
	if n := len(d.db.parked["a"]); n != 2 || !d.db.over["a"] {
		t.Errorf("%d parked, overflowed %t; want 2 parked and the account marked", n, d.db.over["a"])
	}
	d.feed(credited("a", 2, 1))
	if v := d.db.rows["a"].Version; v != 4 {
		t.Errorf("healed to version %d, want 4: the fifth is in the DLQ only", v)
	}
}

func TestRejectedRecordIsDeadLettered(t *testing.T) {
	d := newTestDriver(t, 1000)
	rec := projection.Record{Topic: "t", Offset: 9}
	if !d.fold.Reject(rec.Place(), "refused: 23514") {
		t.Fatal("rejected before")
	}
	if d.fold.Reject(rec.Place(), "refused: 23514") {
		t.Fatal("a second rejection must be noticed")
	}
	d.judge(rec, credited("a", 1, 5))
	d.settle()
	if len(d.letters) != 1 || d.letters[0].Class != event.RejectedByDatabase || d.letters[0].Message != "refused: 23514" {
		t.Errorf("letters %+v", d.letters)
	}
	if len(d.db.rows) != 0 {
		t.Error("a refused event was applied")
	}
}

func TestJudgedBeforeIsNoConflict(t *testing.T) {
	s, _ := projection.NewState(1).Judge(ptr(credited("a", 1, 5)), false)
	other := with(credited("a", 1, 9), func(e *event.Event) { e.ID = "other" })
	if _, v := s.Judge(&other, true); v.Outcome != projection.Duplicate {
		t.Errorf("outcome %s, want duplicate", v.Outcome)
	}
}

func TestSkipOnlyTheNextVersion(t *testing.T) {
	s, _ := projection.NewState(1).Judge(ptr(credited("a", 1, 5)), false)
	for _, version := range []int64{0, 1, 3} {
		if _, done := s.Skip(version, ""); done {
			t.Errorf("version %d was passed over at version 1", version)
		}
	}
	skipped, done := s.Skip(2, "")
	if !done || skipped.Version != 2 || skipped.Balance != 5 || skipped.LastEventID != "" {
		t.Errorf("%t %+v", done, skipped)
	}
	late := credited("a", 2, 7)
	if _, v := skipped.Judge(&late, false); v.Outcome != projection.Duplicate {
		t.Errorf("the passed-over event delivered again is %s, want duplicate", v.Outcome)
	}
}

func ptr[T any](v T) *T { return &v }

// What PostgreSQL has refused is remembered until its dead letter is durable, and no
// longer: with a constraint in its way, a topic may hold any number of such events.
func TestWhatWasRefusedIsForgottenWhenThatIsDurable(t *testing.T) {
	refused := []event.Class{event.RejectedByDatabase}
	d := newTestDriver(t, 10)
	place := projection.Place{}
	if !d.fold.Reject(place, "refused") {
		t.Fatal("known before it was refused")
	}
	d.fold.Reset()
	if d.fold.Reject(place, "refused") {
		t.Error("forgotten before it was judged")
	}
	if got := d.feed(credited("a", 1, 5)); !slices.Equal(got, refused) {
		t.Errorf("dead letters %v", got)
	}
	if !d.fold.Reject(place, "refused") {
		t.Error("still remembered")
	}

	// The same of one that is refused when its turn comes.
	d = newTestDriver(t, 10)
	d.feed(credited("a", 1, 5), credited("a", 3, 7))
	place.Offset = 1
	d.fold.Reject(place, "refused")
	if got := d.feed(credited("a", 2, 6)); !slices.Equal(got, refused) {
		t.Errorf("dead letters %v", got)
	}
	if !d.fold.Reject(place, "refused") {
		t.Error("still remembered when its turn has come")
	}
}

// Versions may begin at 0: an event that is parked there is one like any other.
func TestAnEventParkedAtVersion0(t *testing.T) {
	fold := projection.NewFold(projection.FoldOptions{ParkLimit: 10, CacheBytes: 1 << 20})
	judge := func(d event.Decoded) {
		t.Helper()
		records := []projection.Judgeable{{Decoded: d}}
		fold.Find(records, nil)
		if len(fold.Unread(nil)) > 0 {
			fold.Learn(projection.Account{
				ID: "a", State: projection.NewState(0), Parked: 2, NextParked: 0, NextClass: event.InvalidAmount,
			})
		}
		fold.LearnRest()
		if !fold.JudgeFound(0, &records[0], false) {
			t.Fatal("not judged")
		}
	}
	judge(faulty(credited("a", 0, 5), event.InvalidAmount))
	if l := fold.Changes().Letters; len(l) != 1 || l[0].Expected == nil || *l[0].Expected != 0 {
		t.Errorf("letters %+v", l)
	}
	judge(credited("a", 0, 5)) // corrected: what waits behind it comes next
	if got := fold.Healing(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("healing %v", got)
	}
}

// The rival of an event that waits in the database comes in the same flush as the one
// both wait for, and another event makes the account heal before that flush.
func TestOfTwoParkedForOneVersionTheFirstStays(t *testing.T) {
	d := newDriver(t, newStore(), projection.FoldOptions{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, 10)
	d.feed(credited("a", 1, 5), faulty(credited("a", 2, 6), event.InvalidAmount), credited("a", 3, 10), credited("a", 5, 1))
	rival := with(credited("a", 3, 99), func(e *event.Event) { e.ID = "rival" })
	d.feed(rival, credited("a", 2, 6), credited("a", 2, 6))
	if a := d.db.account("a"); a.State.Version != 3 || a.State.Balance != 21 || a.Parked != 1 || a.NextParked != 5 {
		t.Errorf("%+v", a)
	}
}
