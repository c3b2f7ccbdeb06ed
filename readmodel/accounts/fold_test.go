package accounts_test

import (
	"math"
	"slices"
	"testing"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

func newTestDriver(t *testing.T, parkLimit int64) *driver {
	t.Helper()
	return newDriver(t, newStore(), accounts.Options{FirstVersion: 1, ParkLimit: parkLimit, CacheBytes: 1 << 20}, 2)
}

// The method feed folds the messages at offsets 0, 1, … and returns the classes of the dead
// letters.
func (d *driver) feed(messages ...event.Decoded) []event.Class {
	d.t.Helper()
	before := len(d.letters)
	for i, m := range messages {
		d.apply(projection.Record{Offset: int64(i)}, m)
	}
	d.healAll()
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

func TestDecisions(t *testing.T) {
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
		"mismatch is the gap":           {[]event.Decoded{credited("a", 1, 5), inYen(2), credited("a", 3, 1)}, []event.Class{event.CurrencyMismatch, event.VersionGap}, 1, 5},
		"poison, then the right one":    {[]event.Decoded{credited("a", 1, 5), faulty(credited("a", 2, 6), event.InvalidAmount), credited("a", 3, 1), credited("a", 2, 6)}, []event.Class{event.InvalidAmount, event.VersionGap}, 3, 12},
		"parked, fails at its turn":     {[]event.Decoded{credited("a", 1, 5), inYen(3), credited("a", 4, 1), credited("a", 2, 6)}, []event.Class{event.VersionGap, event.VersionGap, event.CurrencyMismatch}, 2, 11},
		"parked, overflows at its turn": {[]event.Decoded{credited("a", 1, math.MaxInt64-6), credited("a", 3, 1), credited("a", 2, 6)}, []event.Class{event.VersionGap, event.BalanceOverflow}, 2, math.MaxInt64},
		"poison ahead stops healing":    {[]event.Decoded{credited("a", 1, 5), faulty(credited("a", 3, 1), event.UnknownEventType), credited("a", 4, 1), credited("a", 2, 6)}, []event.Class{event.UnknownEventType, event.VersionGap}, 2, 11},
		"first of two parked stays":     {[]event.Decoded{credited("a", 1, 5), credited("a", 3, 1), otherID(credited("a", 3, 100)), credited("a", 2, 6)}, []event.Class{event.VersionGap, event.VersionGap}, 3, 12},
		"poison of an applied version":  {[]event.Decoded{credited("a", 1, 5), faulty(credited("a", 1, 5), event.MalformedPayload)}, nil, 1, 5},
		"overflow":                      {[]event.Decoded{credited("a", 1, math.MaxInt64), credited("a", 2, 1)}, []event.Class{event.BalanceOverflow}, 1, math.MaxInt64},
		"unreadable holds nobody":       {[]event.Decoded{credited("a", 1, 5), unread, credited("a", 2, 1)}, []event.Class{event.MalformedPayload}, 2, 6},
		"tombstone":                     {[]event.Decoded{credited("a", 1, 5), {Tombstone: true}, credited("a", 2, 1)}, nil, 2, 6},
		"ignorable advances":            {[]event.Decoded{credited("a", 1, 5), ofType(2, event.Ignorable), credited("a", 3, 1)}, nil, 3, 6},
		"closed without currency":       {[]event.Decoded{ofType(1, event.TypeNamed("AccountClosed")), credited("a", 2, 1)}, nil, 2, 1},
		"currency fixed by first money": {[]event.Decoded{ofType(1, event.TypeNamed("AccountOpened")), credited("a", 2, 1), inYen(3)}, []event.Class{event.CurrencyMismatch}, 2, 1},
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
	kinds := []event.Type{event.TypeNamed("AccountOpened"), event.TypeNamed("AccountClosed"), event.TypeNamed("FundsCredited"), event.TypeNamed("AccountOpened")}
	want := []bool{false, true, true, false}
	for i, kind := range kinds {
		m := with(credited("a", int64(i+1), 1), func(e *event.Event) { e.Type = kind })
		d.feed(m)
		if got := d.db.rows["a"].Closed; got != want[i] {
			t.Errorf("after event %d closed is %t, want %t", i+1, got, want[i])
		}
	}
}

func TestDeadLetterNamesWhatIsKnown(t *testing.T) {
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

// refuse folds an event and simulates that PostgreSQL refuses it. Then it resets the fold.
func (d *driver) refuse(rec projection.Record, decoded event.Decoded) bool {
	d.t.Helper()
	d.apply(rec, decoded)
	defer d.fold.Reset()
	return d.fold.Refuse("refused: 23514")
}

func TestARefusedRecordIsDeadLettered(t *testing.T) {
	d := newTestDriver(t, 1000)
	rec := projection.Record{Topic: "t", Offset: 9}
	if !d.refuse(rec, credited("a", 1, 5)) {
		t.Fatal("refused before")
	}
	if d.refuse(rec, credited("a", 1, 5)) {
		t.Fatal("a second refusal must be noticed")
	}
	d.apply(rec, credited("a", 1, 5))
	d.healAll()
	if len(d.letters) != 1 || d.letters[0].Class != event.RejectedByDatabase || d.letters[0].Message != "refused: 23514" {
		t.Errorf("letters %+v", d.letters)
	}
	if len(d.db.rows) != 0 {
		t.Error("a refused event was applied")
	}
	if d.fold.Reset(); d.fold.Refuse("refused: 23514") {
		t.Error("nothing was folded, and something is refused")
	}
}

// A refused event is remembered until its dead letter is durable, and then forgotten. Otherwise a
// constraint in the database could make the memory grow without limit.
func TestWhatWasRefusedIsForgottenWhenThatIsDurable(t *testing.T) {
	refused := []event.Class{event.RejectedByDatabase}
	d := newTestDriver(t, 10)
	d.refuse(projection.Record{}, credited("a", 1, 5))
	if got := d.feed(credited("a", 1, 5)); !slices.Equal(got, refused) {
		t.Errorf("dead letters %v", got)
	}
	if !d.refuse(projection.Record{}, credited("a", 1, 5)) {
		t.Error("still remembered")
	}

	// The refused events of a record with several entries are forgotten when its last entry is
	// durable.
	d = newTestDriver(t, 10)
	apply := func(entry int32) {
		r := projection.DecodedRecord{Record: projection.Record{Offset: 3, Message: event.Message{Entry: entry}}, Decoded: credited(string('a'+entry), 1, 5), More: entry < 2}
		if _, err := d.fold.Apply(t.Context(), []projection.DecodedRecord{r}, 1); err != nil {
			t.Fatal(err)
		}
	}
	for entry := range int32(3) { // each entry is alone in its flush, and the record is read again after each refusal
		for before := range entry {
			apply(before)
			d.flush()
		}
		if apply(entry); !d.fold.Refuse("refused: 23514") {
			t.Errorf("entry %d was refused before", entry)
		}
		d.fold.Reset()
	}
	for entry := range int32(3) {
		apply(entry)
		d.flush()
	}
	if len(d.db.rows) != 0 {
		t.Errorf("applied: %v", d.db.rows)
	}
	if apply(0); !d.fold.Refuse("refused: 23514") {
		t.Error("still remembered behind the record")
	}

	// An event can also be refused when it heals, which means that it is applied after it was
	// parked. This event was parked at offset 1.
	d = newTestDriver(t, 10)
	d.feed(credited("a", 1, 5), credited("a", 3, 7))
	d.apply(projection.Record{Offset: 2}, credited("a", 2, 6))
	d.fold.Refuse("refused")
	d.fold.Reset()
	if got := d.feed(credited("a", 2, 6)); !slices.Equal(got, refused) {
		t.Errorf("dead letters %v", got)
	}
	d = d.restarted()
	d.apply(projection.Record{Offset: 9}, credited("a", 3, 8))
	if d.db.rows["a"].Version != 2 {
		t.Errorf("version %d", d.db.rows["a"].Version)
	}
}

// The method restarted returns a driver of the same store without any accounts in memory, as after
// a restart.
func (d *driver) restarted() *driver {
	return newDriver(d.t, d.db, accounts.Options{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, d.db.piece)
}

// The first version may be 0. A parked event with version 0 is treated like other parked events.
func TestAnEventParkedAtVersion0(t *testing.T) {
	db := newStore()
	db.first = 0
	db.parked["a"] = map[int64]projection.Parked{
		0: {Decoded: faulty(credited("a", 0, 5), event.InvalidAmount), Class: event.InvalidAmount},
		1: {Decoded: credited("a", 1, 7), Class: event.VersionGap},
	}
	d := newDriver(t, db, accounts.Options{ParkLimit: 10, CacheBytes: 1 << 20}, 10)
	d.apply(projection.Record{}, faulty(credited("a", 0, 5), event.InvalidAmount))
	if l := d.fold.Gather().DeadLetters; len(l) != 1 || l[0].Expected == nil || *l[0].Expected != 0 {
		t.Errorf("letters %+v", l)
	}
	d.apply(projection.Record{Offset: 1}, credited("a", 0, 5)) // after this correction, the waiting event is next
	d.healAll()
	if a := db.rows["a"]; a.Version != 1 || a.Balance != 12 {
		t.Errorf("%+v", a)
	}
}

// An event waits in the database. A conflicting event of the same version and the missing event
// before that version arrive in one flush. The account's next record causes the waiting event to be
// applied before that flush.
func TestOfTwoParkedForOneVersionTheFirstStays(t *testing.T) {
	d := newDriver(t, newStore(), accounts.Options{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, 10)
	d.feed(credited("a", 1, 5), faulty(credited("a", 2, 6), event.InvalidAmount), credited("a", 3, 10), credited("a", 5, 1))
	conflicting := with(credited("a", 3, 99), func(e *event.Event) { e.ID = "rival" })
	d.feed(conflicting, credited("a", 2, 6), credited("a", 2, 6))
	if a := d.db.account("a"); a.Account.Version != 3 || a.Account.Balance != 21 || a.Parked != 1 || a.NextParked != 5 {
		t.Errorf("%+v", a)
	}
}

// A poison event, which cannot be applied, and its correction arrive in either order while their
// account waits for an earlier version. All combinations of flushes are tested, with a park limit
// of 10 events and with a park limit of 2.
func TestAParkedPoisonEventGivesWayToItsCorrection(t *testing.T) {
	poison := faulty(credited("a", 3, 6), event.InvalidAmount)
	corrected := with(credited("a", 3, 100), func(e *event.Event) { e.ID = "corrected" })
	for _, limit := range []int64{10, 2} {
		for cuts := range 1 << 5 { // all choices of flushing or not after each of these records
			for _, order := range [][]event.Decoded{
				{credited("a", 1, 5), poison, credited("a", 4, 7), corrected, credited("a", 2, 1)},
				{credited("a", 1, 5), credited("a", 4, 7), poison, corrected, credited("a", 2, 1)},
				{credited("a", 1, 5), credited("a", 4, 7), corrected, poison, credited("a", 2, 1)},
			} {
				d := newDriver(t, newStore(), accounts.Options{FirstVersion: 1, ParkLimit: limit, CacheBytes: 1 << 20}, 10)
				for i, decoded := range order {
					if d.apply(projection.Record{Topic: "t", Offset: int64(i)}, decoded); cuts>>i&1 == 1 {
						d.flush()
					}
				}
				if d.healAll(); d.db.rows["a"].Version != 4 || d.db.rows["a"].Balance != 113 {
					t.Fatalf("limit %d, flushes %05b: %+v", limit, cuts, d.db.account("a"))
				}
			}
		}
	}
}

// The first parked event of the account is not the poison event. After a flush, the fold therefore
// knows only that a poison event may be parked.
func TestACorrectionBeyondTheParkLimitReplacesAPoisonEvent(t *testing.T) {
	poison := faulty(credited("a", 4, 6), event.InvalidAmount)
	for cuts := range 1 << 5 {
		d := newDriver(t, newStore(), accounts.Options{FirstVersion: 1, ParkLimit: 2, CacheBytes: 1 << 20}, 10)
		for i, decoded := range []event.Decoded{credited("a", 1, 5), credited("a", 3, 7), poison, credited("a", 4, 100), credited("a", 2, 1)} {
			if d.apply(projection.Record{Topic: "t", Offset: int64(i)}, decoded); cuts>>i&1 == 1 {
				d.flush()
			}
		}
		if d.healAll(); d.db.rows["a"].Version != 4 || d.db.rows["a"].Balance != 113 {
			t.Fatalf("flushes %05b: %+v", cuts, d.db.account("a"))
		}
	}
}

// TestOnlyWaitingEventsCountForTheParkLimit shows that a parked event no longer counts after another
// event of its version was applied.
func TestOnlyWaitingEventsCountForTheParkLimit(t *testing.T) {
	poison := func(version int64) event.Decoded { return faulty(credited("a", version, 6), event.InvalidAmount) }
	rest := []event.Decoded{
		credited("a", 2, 6), credited("a", 3, 6), poison(4), credited("a", 4, 6), credited("a", 7, 6), credited("a", 6, 6), credited("a", 5, 6),
	}
	for name, flushes := range map[string][][]event.Decoded{
		"parked in this flush": {append([]event.Decoded{credited("a", 1, 5), poison(2)}, rest...)},
		"parked before":        {{credited("a", 1, 5), poison(2), credited("a", 3, 6)}, rest},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDriver(t, 2)
			for _, flush := range flushes {
				d.feed(flush...)
			}
			if d.db.over["a"] || d.db.rows["a"].Version != 7 {
				t.Errorf("version %d, beyond the park limit %v; want version 7, and two events may wait", d.db.rows["a"].Version, d.db.over["a"])
			}
		})
	}
}
