package operators_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/e2e/wait"
)

// known is the state of an account of an ordered projection in the database.
type known struct {
	id       string
	version  int64
	overflow int64   // highest version beyond the park limit
	parked   []place // in the order of the versions
}

// This query reads the accounts beyond the park limit and the accounts in $1. An account in $1 may
// be within the limit now, because its events have been read again.
const balanceKnown = `SELECT account_id, coalesce(b.version, 0), coalesce(o.highest_version, 0),
		ARRAY(SELECT partition FROM parked_event p WHERE p.account_id = i.account_id ORDER BY version),
		ARRAY(SELECT "offset" FROM parked_event p WHERE p.account_id = i.account_id ORDER BY version)
	FROM (SELECT account_id FROM park_overflow UNION SELECT unnest($1::text[])) i (account_id)
	LEFT JOIN park_overflow o USING (account_id) LEFT JOIN account_balance b USING (account_id)`

const orderedKnown = `SELECT account_id, coalesce(b.version, 0), coalesce(o.highest_version, 0),
		ARRAY(SELECT partition FROM projection_parked_event p WHERE p.projection = 'random_ordered' AND p.account_id = i.account_id ORDER BY version),
		ARRAY(SELECT "offset" FROM projection_parked_event p WHERE p.projection = 'random_ordered' AND p.account_id = i.account_id ORDER BY version)
	FROM (SELECT account_id FROM projection_park_overflow WHERE projection = 'random_ordered' UNION SELECT unnest($1::text[])) i (account_id)
	LEFT JOIN (SELECT * FROM projection_park_overflow WHERE projection = 'random_ordered') o USING (account_id)
	LEFT JOIN (SELECT * FROM projection_account WHERE projection = 'random_ordered') b USING (account_id)`

// The method limited adopts the database's state for accounts that have more waiting events than
// the park limit. It is not predictable which of these events are parked. A batch may count a
// repeated event twice and then parks fewer events (docs/decisions/0010). The method adopt checks
// that the version in the database is possible.
func (s *stage) limited(r *reader) error {
	query := balanceKnown
	if r.name != "account_balance" {
		query = orderedKnown
	}
	var beyond []string
	for id, a := range r.ordered().accounts {
		if a.beyond > a.version {
			beyond = append(beyond, id)
		}
	}
	rows, err := s.db.Query(s.t.Context(), query, beyond)
	if err != nil {
		return err
	}
	var (
		k          known
		partitions []int32
		offsets    []int64
	)
	_, err = pgx.ForEachRow(rows, []any{&k.id, &k.version, &k.overflow, &partitions, &offsets}, func() error {
		k.parked = nil
		for i := range partitions {
			k.parked = append(k.parked, place{partitions[i], offsets[i]})
		}
		r.ordered().adopt(&k, s.log)
		return nil
	})
	return err
}

// adopt sets an account to the state in the database if the oracle could have reached this state.
func (o *ordered) adopt(k *known, log [][]*event) {
	a := o.accounts[k.id]
	if a == nil || k.overflow <= k.version && a.beyond <= a.version {
		return
	}
	if reached, was := a.history[k.version]; was && k.version != a.version && k.version >= a.floor {
		// The program may be behind the oracle now and reach the oracle's version later.
		a.history[a.version] = a.state
		a.state = reached
	}
	for a.version < k.version {
		if !o.advanceFrom(a, k.id, log) {
			return
		}
	}
	if a.version != k.version {
		return
	}
	all := a.waiting
	a.waiting = map[int64]*parked{}
	for _, p := range k.parked {
		e := log[p.partition][p.offset]
		if e.account != k.id || e.version <= a.version || o.discarded[p] {
			continue
		}
		class := gap
		if i := slices.IndexFunc(o.letters, func(l parked) bool { return l.place() == p && l.class != gap }); i >= 0 {
			class = o.letters[i].class
		}
		if was := all[e.version]; was != nil && was.place() == p {
			class = was.class
		}
		a.waiting[e.version] = &parked{e, class}
	}
	a.beyond = k.overflow
	o.heal(a) // the program may have parked events that it applies in its next transaction
}

// advanceFrom applies the account's next event, which is in the topic. It returns false if there is
// none that can be applied.
func (o *ordered) advanceFrom(a *account, id string, log [][]*event) bool {
	next := a.version + 1
	for _, records := range log {
		for _, e := range records {
			if !e.garbage && e.account == id && e.version == next && o.fault(e) == "" && !o.discarded[e.place()] && o.advance(a, e) == "" {
				return true
			}
		}
	}
	return false
}

// dueNow counts the accounts whose next event is beyond the park limit and will be read again.
const dueNow = `SELECT count(*) FROM %s o JOIN %s b USING (account_id)
	LEFT JOIN %s p ON p.account_id = o.account_id AND p.version = b.version + 1
	JOIN projector_position x ON x.topic = o.topic AND x.partition = o.partition AND x.projection = '%s'
	WHERE o.first_offset IS NOT NULL AND o.first_version <= b.version + 1 AND o.highest_version > b.version AND p.account_id IS NULL
	AND x.paused_reason IS NULL AND x.breaker_reason IS NULL AND x.stopped_reason IS NULL`

// readAgain waits until the program has read the events beyond the park limit again. No account
// then heals by itself while an operator decides. readAgain waits at most for exactWithin, and
// reports whether it had to wait.
func (s *stage) readAgain(r *reader) (some bool) {
	query := fmt.Sprintf(dueNow, "park_overflow", "account_balance", "parked_event", "account_balance")
	if r.name != "account_balance" {
		const of = "(SELECT * FROM %s WHERE projection = 'random_ordered')"
		query = fmt.Sprintf(dueNow, fmt.Sprintf(of, "projection_park_overflow"), fmt.Sprintf(of, "projection_account"),
			fmt.Sprintf(of, "projection_parked_event"), "random_ordered")
	}
	for deadline := time.Now().Add(exactWithin); time.Now().Before(deadline); wait.Pass(s.t.Context(), 100*time.Millisecond) {
		var due int
		if err := s.db.QueryRow(s.t.Context(), query).Scan(&due); err == nil && due == 0 {
			return some
		}
		some = true
	}
	return some
}

// TestAnAccountIsAdoptedForwards shows that the oracle follows a program that is first behind it, and
// then has read the events beyond the park limit again.
func TestAnAccountIsAdoptedForwards(t *testing.T) {
	o := newOrdered(3, func(*event) string { return "" }, func(s *state, e *event) string { return "" })
	a := o.account("a")
	for version := range int64(5) {
		o.advance(a, &event{account: "a", version: version + 1, id: fmt.Sprint("e-", version+1)})
	}
	for _, k := range []known{{id: "a", version: 2, overflow: 5}, {id: "a", version: 4, overflow: 5}, {id: "a", version: 5}} {
		o.adopt(&k, nil)
		if a.version != k.version || a.lastID != fmt.Sprint("e-", k.version) {
			t.Errorf("version %d after event %s, want %d", a.version, a.lastID, k.version)
		}
	}
	if a.waits() {
		t.Error("the account waits")
	}
}
