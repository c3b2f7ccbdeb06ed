package operators_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// This query reads the accounts in $1. An account may be within the park limit now, because its events
// have been read again.
const balanceKnown = `SELECT account_id, coalesce(b.version, 0), coalesce(o.highest_version, 0),
		ARRAY(SELECT partition FROM parked_event p WHERE p.account_id = i.account_id ORDER BY version),
		ARRAY(SELECT "offset" FROM parked_event p WHERE p.account_id = i.account_id ORDER BY version)
	FROM unnest($1::text[]) i (account_id)
	LEFT JOIN park_overflow o USING (account_id) LEFT JOIN account_balance b USING (account_id)`

const orderedKnown = `SELECT account_id, coalesce(b.version, 0), coalesce(o.highest_version, 0),
		ARRAY(SELECT partition FROM projection_parked_event p WHERE p.projection = 'random_ordered' AND p.account_id = i.account_id ORDER BY version),
		ARRAY(SELECT "offset" FROM projection_parked_event p WHERE p.projection = 'random_ordered' AND p.account_id = i.account_id ORDER BY version)
	FROM unnest($1::text[]) i (account_id)
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
	rows, err := s.db.Query(s.t.Context(), query, slices.Collect(maps.Keys(r.ordered().accounts)))
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
		r.ordered().adopt(&k, s.log, r.killed)
		return nil
	})
	return err
}

// adopt sets an account to the state in the database if the oracle could have reached this state.
// The parameter killed is true if a consumer was killed. The next consumer may read again what was
// not committed to Kafka. It may then apply the second of two events of one version.
func (o *ordered) adopt(k *known, log [][]*event, killed bool) {
	a := o.accounts[k.id]
	if a == nil {
		return
	}
	redelivered := killed && k.version > a.version && !strings.HasPrefix(k.id, "calm")
	if k.overflow <= k.version && a.beyond <= a.version && !redelivered && !o.waitsForFirst(k, a, log) {
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

// waitsForFirst reports whether the program waits at the first of two events of one version, while the
// oracle has applied the second one. The first one cannot be applied. The program parks it if both were
// beyond the park limit and it has read them again. A calm account never exceeds the limit.
func (o *ordered) waitsForFirst(k *known, a *account, log [][]*event) bool {
	at, was := a.history[k.version]
	if !was || len(k.parked) == 0 || strings.HasPrefix(k.id, "calm") {
		return false
	}
	first := log[k.parked[0].partition][k.parked[0].offset]
	if first.version != k.version+1 || o.fault(first) == "" && o.apply(&at, first) == "" {
		return false
	}
	for _, e := range log[first.partition][first.offset+1:] {
		if !e.garbage && e.account == k.id && e.version == first.version && o.fault(e) == "" && !o.discarded[e.place()] {
			return true
		}
	}
	return false
}

// advanceFrom applies the account's next event, the first one of its version in the topic that can be
// applied. It returns false if there is none.
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

// dueNow counts the accounts whose next event is parked and will be applied, or is beyond the park limit
// and will be read again.
const dueNow = `WITH overflow AS (SELECT * FROM %s), account AS (SELECT * FROM %s), parked AS (SELECT * FROM %s),
		running AS (SELECT topic, partition FROM projector_position
			WHERE projection = '%s' AND paused_reason IS NULL AND breaker_reason IS NULL AND stopped_reason IS NULL)
	SELECT (SELECT count(*) FROM overflow o JOIN running USING (topic, partition) LEFT JOIN account b USING (account_id)
			LEFT JOIN parked p ON p.account_id = o.account_id AND p.version = coalesce(b.version, 0) + 1 AND p.class = 'version_gap'
			WHERE o.first_offset IS NOT NULL AND o.first_version <= coalesce(b.version, 0) + 1 AND o.highest_version > coalesce(b.version, 0) AND p.account_id IS NULL)
		+ (SELECT count(*) FROM parked p JOIN running USING (topic, partition) LEFT JOIN account b USING (account_id)
			WHERE p.version = coalesce(b.version, 0) + 1 AND p.class = 'version_gap')`

// readAgain waits until the program has read the events beyond the park limit again and has applied
// them. No account then heals by itself while an operator decides. readAgain waits at most for
// exactWithin, and reports whether it had to wait.
func (s *stage) readAgain(r *reader) (some bool) {
	query := fmt.Sprintf(dueNow, "park_overflow", "account_balance", "parked_event", "account_balance")
	if r.name != "account_balance" {
		const of = "%s WHERE projection = 'random_ordered'"
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
		o.adopt(&k, nil, false)
		if a.version != k.version || a.lastID != fmt.Sprint("e-", k.version) {
			t.Errorf("version %d after event %s, want %d", a.version, a.lastID, k.version)
		}
	}
	if a.waits() {
		t.Error("the account waits")
	}
}

// TestAnAccountWaitsForTheFirstOfTwoEvents shows that the oracle follows a program that has read two
// events of one version again and has parked the first one.
func TestAnAccountWaitsForTheFirstOfTwoEvents(t *testing.T) {
	for _, id := range []string{"busy-1", "calm-1"} {
		log := [][]*event{{
			{account: id, version: 1, id: "right", currency: "EUR"},
			{account: id, version: 2, id: "wrong", currency: "USD", offset: 1},
			{account: id, version: 2, id: "right", currency: "EUR", offset: 2},
			{account: id, version: 3, id: "right", currency: "EUR", offset: 3},
		}}
		o := newOrdered(3, func(*event) string { return "" }, func(_ *state, e *event) string {
			if e.currency != "EUR" {
				return "currency_mismatch"
			}
			return ""
		})
		for _, e := range log[0] {
			o.deliver(e, false)
		}
		a := o.account(id)
		o.adopt(&known{id: id, version: 1, parked: []place{{0, 1}, {0, 3}}}, log, false)
		if id == "busy-1" && (a.version != 1 || a.waiting[2].class != "currency_mismatch" || a.waiting[3].class != gap) {
			t.Errorf("version %d, waiting %v: it should wait for version 2", a.version, a.waiting)
		}
		if id == "calm-1" && a.version != 3 {
			t.Errorf("version %d of a calm account, want 3", a.version)
		}
	}
}
