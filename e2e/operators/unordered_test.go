package operators_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// unordered is the oracle of a projection that applies events in any order. It applies one event
// for each key.
type unordered struct {
	key   func(*event) string
	rules *rules
	fault func(*event) string // the reason why an event cannot be applied
	row   func(*event) string // the key of the row that the event changes
	rows  func(applied map[string]*event) map[string]string

	applied   map[string]*event
	corrected map[string]*event
	// open has, for rows that a rebuild may have left unchanged, the keys of the events that such a row
	// then lacks, or has as an earlier mapping has read them. The field earlier has the latter events.
	open      map[string][]string
	earlier   map[string]*event
	discarded map[place]bool
	letters   []parked
}

func newUnordered(key func(*event) string, rules *rules, fault, row func(*event) string, rows func(map[string]*event) map[string]string) *unordered {
	return &unordered{
		key: key, rules: rules, fault: fault, row: row, rows: rows,
		applied: map[string]*event{}, corrected: map[string]*event{}, open: map[string][]string{}, discarded: map[place]bool{},
	}
}

func byID(e *event) string { return e.id }

func byVersion(e *event) string { return fmt.Sprintf("%s %d", e.account, e.version) }

func (u *unordered) deliver(e *event, _ bool) {
	open := u.open[u.row(e)]
	i := slices.Index(open, u.key(e))
	if u.earlier[u.key(e)] != nil { // the row has it
		i = -1
	}
	if e.garbage || u.discarded[e.place()] || u.applied[u.key(e)] != nil && i < 0 {
		return
	}
	read := u.rules.read(e)
	if class := u.fault(read); class != "" {
		u.letters = append(u.letters, parked{e, class})
		return
	}
	u.applied[u.key(e)] = read // the id is used, even if the event changes no row
	if i >= 0 {
		u.open[u.row(e)] = slices.Delete(open, i, i+1)
	}
}

// apply returns false if the event cannot be applied.
func (u *unordered) apply(e *event) bool {
	read := u.rules.read(e)
	if u.applied[u.key(e)] != nil || u.fault(read) != "" {
		return false
	}
	u.applied[u.key(e)] = read
	return true
}

// force applies an event that an operator corrected or fetched.
func (u *unordered) force(e *event) bool {
	if !u.apply(e) {
		return false
	}
	u.corrected[u.key(e)] = e
	return true
}

func (u *unordered) replay(only string) {
	for _, l := range u.letters {
		if (only == "" || l.account == only) && !u.discarded[l.place()] {
			u.deliver(l.event, true)
		}
	}
}

func (u *unordered) discard(places ...place) {
	for _, p := range places {
		u.discarded[p] = true
	}
}

// takeBack applies a discarded event. It returns false if the event cannot be applied.
func (u *unordered) takeBack(e *event) bool {
	if e.garbage || !u.apply(e) {
		return false
	}
	delete(u.discarded, e.place())
	return true
}

// The method rebuilt computes the rows from the whole log and the operators' decisions. A rebuild
// may leave a row unchanged if an event was corrected or the position was set back. The row then lacks
// events. Events may arrive during the rebuild, so the method choose finds out later which rows lack
// them in those rows that are not right yet.
func (u *unordered) rebuilt(log [][]*event, found rebuiltRows) {
	known, live := u.letters, u.applied
	u.applied, u.open, u.earlier = map[string]*event{}, map[string][]string{}, map[string]*event{}
	for key, e := range u.corrected {
		u.applied[key] = e
	}
	for _, records := range log {
		for _, e := range records {
			u.deliver(e, true)
		}
	}
	u.letters = known
	if len(u.corrected) == 0 && !found.rereading {
		return
	}
	for key, e := range u.applied {
		if live[key] == nil {
			u.open[u.row(e)] = append(u.open[u.row(e)], key)
		}
	}
	for key, e := range live {
		if now := u.applied[key]; (e.renamed || e.kind == unknown) && now == nil || now != nil && now.id == e.id && now.kind != e.kind {
			u.open[u.row(e)], u.earlier[key] = append(u.open[u.row(e)], key), e
		}
	}
	u.choose(found.rows())
}

// choose leaves the events that a rebuild may have left out, out of each row that is right without
// all of them.
func (u *unordered) choose(got map[string]string) {
	without := maps.Clone(u.applied)
	for _, keys := range u.open {
		u.asEarlier(without, keys)
	}
	most, least := u.rows(u.applied), u.rows(without)
	for row, keys := range u.open {
		switch got[row] {
		case least[row]:
			u.asEarlier(u.applied, keys)
			delete(u.open, row)
		case most[row]:
			delete(u.open, row)
		}
	}
}

// asEarlier gives events the state that they had before the rebuild.
func (u *unordered) asEarlier(applied map[string]*event, keys []string) {
	for _, key := range keys {
		delete(applied, key)
		if e := u.earlier[key]; e != nil {
			applied[key] = e
		}
	}
}

func byDay(e *event) string { return e.at.UTC().Format(time.DateOnly) + " " + e.currency }

func byAccount(e *event) string { return e.account }

func statementRows(applied map[string]*event) map[string]string {
	rows := map[string]string{}
	for key, e := range applied {
		amount, currency := "-", e.currency
		switch {
		case e.funds():
			amount = money(e.signed())
		case e.kind == unknown: // an ignored type
			currency = ""
		}
		rows[key] = join(e.id, e.kind, amount, currency)
	}
	return rows
}

func turnoverRows(applied map[string]*event) map[string]string {
	type sums struct{ credited, debited, events int64 }
	days := map[string]*sums{}
	for _, e := range applied {
		if !e.funds() {
			continue
		}
		key := byDay(e)
		if days[key] == nil {
			days[key] = &sums{}
		}
		days[key].events++
		if e.kind == credit {
			days[key].credited += e.cents
		} else {
			days[key].debited += e.cents
		}
	}
	rows := map[string]string{}
	for key, s := range days {
		rows[key] = fmt.Sprint(money(s.credited), " ", money(s.debited), " ", s.events)
	}
	return rows
}

func (r *rules) countRows(applied map[string]*event) map[string]string {
	points, events := map[string]int64{}, map[string]int64{}
	for _, e := range applied {
		if !e.funds() {
			continue
		}
		points[e.account] += number(e.points)
		events[e.account]++
	}
	rows := map[string]string{}
	for id, n := range events {
		rows[id] = fmt.Sprint(n, " ", r.factors[0]*points[id])
	}
	return rows
}

// TestARowThatARebuildLeft shows that the oracle of a sum decides after a rebuild whether the row lacks
// an event. Another event of the row arrives during the rebuild.
func TestARowThatARebuildLeft(t *testing.T) {
	for row, want := range map[string]string{"2 11": "2 11", "3 111": "3 111", "3 112": "3 111", "": "3 111"} {
		u := counts(&rules{factors: [2]int64{1, 1}})
		log := [][]*event{{
			{id: "1", account: "a", kind: credit, points: "1"},
			{id: "2", account: "a", kind: credit, points: "100", offset: 1},
		}}
		u.deliver(log[0][0], false)
		u.corrected["3"] = &event{id: "3", account: "b", kind: credit, points: "1"}
		u.rebuilt(log, rebuiltRows{rows: func() map[string]string { return map[string]string{"a": row, "b": "1 1"} }})
		u.deliver(&event{id: "4", account: "a", kind: credit, points: "10", offset: 2}, false)
		u.choose(map[string]string{"a": row})
		if got := u.rows(u.applied); got["a"] != want || got["b"] != "1 1" {
			t.Errorf("rows %v for %q, want %q", got, row, want)
		}
	}
}

// TestARowOfAnEarlierMapping shows that the oracle of a sum decides after a rebuild whether the row has
// an event as the present mapping reads it, or still as an earlier one has read it.
func TestARowOfAnEarlierMapping(t *testing.T) {
	for row, want := range map[string]string{"1 1": "1 1", "2 101": "2 101"} {
		r := &rules{factors: [2]int64{1, 1}, means: ignorable}
		u := counts(r)
		log := [][]*event{{
			{id: "1", account: "a", kind: credit, points: "1"},
			{id: "2", account: "a", kind: unknown, points: "100", offset: 1},
		}}
		for _, e := range log[0] {
			u.deliver(e, false)
		}
		r.means = credit
		u.deliver(log[0][1], true)
		if got := u.rows(u.applied)["a"]; got != "1 1" {
			t.Errorf("row %q before the rebuild, want what the earlier mapping gave", got)
		}
		u.corrected["3"] = &event{id: "3", account: "b", kind: credit, points: "1"}
		u.rebuilt(log, rebuiltRows{rows: func() map[string]string { return map[string]string{"a": row, "b": "1 1"} }})
		if got := u.rows(u.applied)["a"]; got != want {
			t.Errorf("row %q for %q, want %q", got, row, want)
		}
	}
}
