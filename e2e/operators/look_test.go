package operators_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// look runs commands that change nothing, and compares what they print.
func (s *stage) look() {
	s.t.Helper()
	r := s.anyReader()
	s.statuses(r)
	s.summary(r)
	if o := r.ordered(); o != nil {
		s.gaps(r, o)
	}
	s.statement()
	s.count("look", true)
}

// summary expects dlq summary to count the dead letters that dlq list shows.
func (s *stage) summary(r *reader) {
	s.t.Helper()
	type group struct{ Class, Status string }
	want, got := map[group]int64{}, map[group]int64{}
	for _, l := range lines[letter](s, s.run(append([]string{"dlq", "list"}, s.readerFlags("dlq list", r)...)...).stdout) {
		want[group{l.Class, l.Status}]++
	}
	for _, g := range lines[struct {
		group
		Records int64
	}](s, s.run(append([]string{"dlq", "summary"}, s.readerFlags("dlq summary", r)...)...).stdout) {
		got[g.group] += g.Records
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("%s: dlq summary counts %v, dlq list shows %v", r.name, got, want)
	}
}

// gaps expects gaps list and account show to agree with the oracle.
func (s *stage) gaps(r *reader, o *ordered) {
	s.t.Helper()
	expected := map[string]int64{}
	for _, g := range lines[struct {
		ID       string `json:"account_id"`
		Expected int64  `json:"expected_version"`
	}](s, s.run(append([]string{"gaps", "list"}, s.readerFlags("open", r)...)...).stdout) {
		expected[g.ID] = g.Expected
	}
	for _, id := range slices.Sorted(maps.Keys(o.accounts)) {
		a, want := o.accounts[id], int64(0)
		if a.waits() {
			want = a.version + 1
		}
		if expected[id] != want {
			s.t.Errorf("%s: gaps list says that %s waits for %d, want %d", r.name, id, expected[id], want)
		}
	}
	id := s.anyBusy(func(a *account) bool { return a.version > 0 }, o)
	if id == "" {
		return
	}
	for _, shown := range lines[struct {
		Version *int64
		Waiting *int64 `json:"waiting_for_version"`
		Parked  []struct{ Version int64 }
	}](s, s.run(append([]string{"account", "show", id}, s.readerFlags("open", r)...)...).stdout) {
		if a := o.account(id); shown.Version == nil || *shown.Version != a.version || (shown.Waiting != nil) != a.waits() {
			s.t.Errorf("%s: account show has another state of %s, which is at %d and waits: %v", r.name, id, a.version, a.waits())
		}
		for _, p := range shown.Parked {
			if p.Version <= *shown.Version {
				s.t.Errorf("%s: version %d of %s is parked, and the account is at %d", r.name, p.Version, id, *shown.Version)
			}
		}
	}
}

// statement expects the running balance of a statement to end with the balance, if both projections have
// applied the same events.
func (s *stage) statement() {
	s.t.Helper()
	balances, statements := s.readers[0].ordered(), s.readers[1].oracle.(*unordered)
	id := pick(s, slices.Sorted(maps.Keys(balances.accounts)))
	a, sum := balances.account(id), int64(0)
	if a.version == 0 || a.opening != nil || len(a.skipped) > 0 || a.currency == "" {
		return
	}
	for v := int64(1); v <= a.version; v++ {
		e := statements.applied[fmt.Sprintf("%s %d", id, v)]
		if e == nil || e.currency != a.currency || e.kind == unknown {
			return
		}
		sum += e.signed()
	}
	p := s.run("account", "statement", id, fmt.Sprint("--version-to=", a.version), "--output=json")
	all := lines[struct {
		Version int64
		Running *json.Number `json:"running_balance"`
	}](s, p.stdout)
	if n := len(all); n == 0 || all[n-1].Version != a.version || all[n-1].Running == nil || all[n-1].Running.String() != money(sum) {
		s.t.Errorf("account statement of %s does not end with version %d and %s", id, a.version, money(sum))
	}
	if differs := strings.Contains(p.stderr, "does not add up"); differs != (sum != a.balance) {
		s.t.Errorf("account statement of %s says that the balance differs: %v; the balance is %s", id, differs, money(a.balance))
	}
}

// rebuildTwice expects a rebuild to leave no difference.
func (s *stage) rebuildTwice(r *reader) {
	s.t.Helper()
	if !s.rebuild(r) {
		return
	}
	if p := s.run(append([]string{"rebuild", "--exit-code"}, s.readerFlags("rebuild", r)...)...); !p.done() {
		s.t.Errorf("%s differs after a rebuild: %s%s", r.name, indented(p.stdout), indented(p.stderr))
	}
	s.count("rebuild twice", true)
}
