package projection_test

import (
	"sort"
	"strings"
	"testing"

	"projector/projection"
	"projector/projection/event"
)

// store stands for the database behind a fold: balance rows and parked events.
type store struct {
	rows   map[string]projection.State
	parked map[string]map[int64]projection.Parked
	over   map[string]bool
}

func newStore() *store {
	return &store{rows: map[string]projection.State{}, parked: map[string]map[int64]projection.Parked{}, over: map[string]bool{}}
}

func (s *store) account(id string) projection.Account {
	a := projection.Account{ID: id, State: projection.NewState(1), Overflowed: s.over[id]}
	if row, exists := s.rows[id]; exists {
		a.Exists, a.State = true, row
	}
	for _, p := range s.above(id, a.State.Version, 1<<30) {
		if a.Parked == 0 {
			a.NextParked, a.NextClass = p.Decoded.Event.Version, p.Class
		}
		a.Parked++
	}
	return a
}

func (s *store) above(id string, version int64, n int) []projection.Parked {
	var list []projection.Parked
	for v, p := range s.parked[id] {
		if v > version {
			list = append(list, p)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Decoded.Event.Version < list[j].Decoded.Event.Version })
	return list[:min(n, len(list))]
}

// floors are those of as many accounts as there is room for.
func (s *store) floors(limit int) *projection.Floors {
	f := projection.NewFloors(limit)
	for id, row := range s.rows {
		f.Add(id, row.Version, row.LastEventID)
	}
	return f
}

// write does what readmodel does in one transaction.
func (s *store) write(t testing.TB, c *projection.Changes) {
	t.Helper()
	for rows := range c.RowChunks(func() int { return 3 }) {
		for _, r := range rows {
			if before, exists := s.rows[r.AccountID]; exists && before.Version >= r.State.Version {
				t.Fatalf("account %s: version %d would be written over %d", r.AccountID, r.State.Version, before.Version)
			}
			r.State.LastEventID = strings.Clone(r.State.LastEventID)
			s.rows[r.AccountID] = r.State
		}
	}
	for _, p := range c.Passed {
		for v := range s.parked[p.AccountID] {
			if v <= p.Version {
				delete(s.parked[p.AccountID], v)
			}
		}
	}
	for _, p := range c.Parks {
		id, v := p.Decoded.Event.AccountID, p.Decoded.Event.Version
		if s.parked[id] == nil {
			s.parked[id] = map[int64]projection.Parked{}
		}
		if _, taken := s.parked[id][v]; !taken {
			s.parked[id][v] = *p
		}
	}
	for _, r := range c.Reclassed {
		p := s.parked[r.AccountID][r.Version]
		p.Class = r.Class
		s.parked[r.AccountID][r.Version] = p
	}
	for _, o := range c.Overflows {
		s.over[o.AccountID] = true
	}
}

// driver feeds a fold as a worker does.
type driver struct {
	t       testing.TB
	db      *store
	fold    *projection.Fold
	floors  *projection.Floors // nil: each account is looked up
	piece   int                // parked events healed at a time
	letters []projection.DeadLetter
	counts  map[projection.Outcome]int
	healed  int
}

func newDriver(t testing.TB, db *store, opts projection.FoldOptions, piece int) *driver {
	t.Helper()
	return &driver{t: t, db: db, fold: projection.NewFold(opts), piece: piece, counts: map[projection.Outcome]int{}}
}

func (d *driver) judge(rec projection.Record, decoded event.Decoded) {
	d.t.Helper()
	records := []projection.Judgeable{{Record: rec, Decoded: decoded}}
	d.fold.Find(records, d.floors)
	for _, id := range d.fold.Unread(nil) {
		if known := d.db.account(id); known.Exists || known.Parked > 0 || known.Overflowed {
			d.fold.Learn(known)
		}
	}
	d.fold.LearnRest()
	for !d.fold.JudgeFound(0, &records[0], false) {
		d.heal(decoded.Event.AccountID)
	}
}

func (d *driver) heal(id string) {
	parked := d.db.above(id, d.fold.Version(id), d.piece)
	d.fold.Heal(id, parked, len(parked) == d.piece)
}

func (d *driver) flush() {
	d.t.Helper()
	c := d.fold.Changes()
	for _, b := range c.Bases {
		row, exists := d.db.rows[b.AccountID]
		if exists != b.Exists || exists && row.Version != b.Version {
			d.t.Fatalf("account %s: a verdict rests on version %d", b.AccountID, b.Version)
		}
	}
	d.letters = append(d.letters, c.Letters...)
	for _, o := range projection.Outcomes() {
		d.counts[o] += c.Outcomes[o]
	}
	d.healed += c.Healed
	d.db.write(d.t, c)
	d.fold.Flushed()
}

// settle heals what is left and flushes.
func (d *driver) settle() {
	d.t.Helper()
	d.flush()
	for len(d.fold.Healing()) > 0 {
		for _, id := range d.fold.Healing() {
			d.heal(id)
		}
		d.flush()
	}
}
