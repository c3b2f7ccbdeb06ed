package accounts_test

import (
	"context"
	"math"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel/accounts"
)

// store simulates the database of a fold: balance rows and parked events.
type store struct {
	rows   map[string]projection.Account
	parked map[string]map[int64]projection.Parked
	over   map[string]bool

	first    int64                  // first version
	piece    int                    // the most parked events that one read returns
	versions *accounts.VersionIndex // if nil, every account is read
	read     []string               // the accounts that were read
}

func newStore() *store {
	return &store{rows: map[string]projection.Account{}, parked: map[string]map[int64]projection.Parked{}, over: map[string]bool{}, first: 1, piece: 1000}
}

func (s *store) account(id string) projection.StoredAccount {
	a := projection.StoredAccount{ID: id, Account: projection.NewAccount(s.first), Overflowed: s.over[id]}
	if row, exists := s.rows[id]; exists {
		a.Exists, a.Account = true, row
	}
	for _, p := range s.above(id, a.Account.Version, 1<<30) {
		if a.Parked == 0 {
			a.NextParked, a.NextClass = p.Decoded.Event.Version, p.Class
		}
		a.Parked++
		a.ParkedBytes += int64(len(p.Record.Value))
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

// The method index returns an index with as many accounts as fit into limit bytes.
func (s *store) index(limit int) *accounts.VersionIndex {
	x := accounts.NewVersionIndex(limit)
	for id, row := range s.rows {
		x.Add(id, row.Version, row.LastEventID)
	}
	return x
}

func (s *store) Accounts(_ context.Context, ids []string, learn func(*projection.StoredAccount)) error {
	s.read = append(s.read, ids...)
	for _, id := range ids {
		if known := s.account(id); known.Exists || known.Parked > 0 || known.Overflowed {
			learn(&known)
		}
	}
	return nil
}

// Parked implements accounts.Store. It returns at most s.piece events in one call.
func (s *store) Parked(_ context.Context, id string, above int64, limit int) ([]projection.Parked, bool, error) {
	parked := s.above(id, above, min(limit, s.piece))
	return parked, len(parked) == min(limit, s.piece), nil
}

func (s *store) Versions(context.Context) *accounts.VersionIndex { return s.versions }

// The method write changes the store in the same way as one transaction of package readmodel.
func (s *store) write(t rapid.TB, c *accounts.Changes) {
	t.Helper()
	for rows := range c.RowChunks(func() int { return 3 }) {
		for _, r := range rows {
			if before, exists := s.rows[r.AccountID]; exists && before.Version >= r.Account.Version {
				t.Fatalf("account %s: version %d would be written over %d", r.AccountID, r.Account.Version, before.Version)
			}
			r.Account.LastEventID = strings.Clone(r.Account.LastEventID)
			s.rows[r.AccountID] = r.Account
		}
	}
	for _, p := range c.Pruned {
		for v := range s.parked[p.AccountID] {
			if v <= p.Version {
				delete(s.parked[p.AccountID], v)
			}
		}
	}
	for _, p := range c.Replacing {
		id, v := p.Decoded.Event.AccountID, p.Decoded.Event.Version
		if there, parked := s.parked[id][v]; parked && there.Class != event.VersionGap {
			s.parked[id][v] = *p
		}
	}
	for _, p := range c.Parks {
		id, v := p.Decoded.Event.AccountID, p.Decoded.Event.Version
		if s.parked[id] == nil {
			s.parked[id] = map[int64]projection.Parked{}
		}
		if there, taken := s.parked[id][v]; !taken || there.Class != event.VersionGap && p.Class == event.VersionGap {
			s.parked[id][v] = *p
		}
	}
	for _, r := range c.Reclassed {
		if p, parked := s.parked[r.AccountID][r.Version]; parked {
			p.Class = r.Class
			s.parked[r.AccountID][r.Version] = p
		}
	}
	for _, o := range c.Overflows {
		if _, parked := s.parked[o.AccountID][o.Version]; !parked {
			s.over[o.AccountID] = true
		}
	}
}

// driver uses a fold in the same way as a session.
type driver struct {
	t       testing.TB
	db      *store
	fold    *accounts.Fold
	letters []projection.DeadLetter
	counts  map[projection.Outcome]int
	healed  int
}

func newDriver(t testing.TB, db *store, opts accounts.Options, piece int) *driver {
	t.Helper()
	db.piece = piece
	return &driver{t: t, db: db, fold: accounts.NewFold(opts, db), counts: map[projection.Outcome]int{}}
}

func (d *driver) apply(rec projection.Record, decoded event.Decoded) {
	d.t.Helper()
	n, err := d.fold.Apply(d.t.Context(), []projection.DecodedRecord{{Record: rec, Decoded: decoded}}, math.MaxInt)
	if n != 1 || err != nil {
		d.t.Fatalf("%d records folded, error %v", n, err)
	}
}

func (d *driver) flush() {
	d.t.Helper()
	c := d.fold.Gather()
	for _, b := range c.DecidedOn {
		row, exists := d.db.rows[b.AccountID]
		if exists != b.Exists || exists && row.Version != b.Version {
			d.t.Fatalf("account %s: a decision rests on version %d", b.AccountID, b.Version)
		}
	}
	d.letters = append(d.letters, c.DeadLetters...)
	for _, o := range projection.Outcomes() {
		d.counts[o] += c.Outcomes[o]
	}
	d.healed += c.Healed
	d.db.write(d.t, c)
	d.fold.Flushed()
}

// healAll applies all parked events that can be applied, and flushes.
func (d *driver) healAll() {
	d.t.Helper()
	d.flush()
	for d.fold.Pending().Healing {
		if err := d.fold.Heal(d.t.Context(), math.MaxInt); err != nil {
			d.t.Fatal(err)
		}
		d.flush()
	}
}
