package operators_test

import (
	"fmt"
	"time"
)

// unordered is the oracle of a projection that applies events in any order. It applies one event
// for each key.
type unordered struct {
	key   func(*event) string
	fault func(*event) string // the reason why an event cannot be applied
	row   func(*event) string // the key of the row that the event changes
	rows  func(applied map[string]*event) map[string]string

	applied   map[string]*event
	corrected map[string]*event
	discarded map[place]bool
	letters   []parked
}

func newUnordered(key, fault, row func(*event) string, rows func(map[string]*event) map[string]string) *unordered {
	return &unordered{
		key: key, fault: fault, row: row, rows: rows,
		applied: map[string]*event{}, corrected: map[string]*event{}, discarded: map[place]bool{},
	}
}

func byID(e *event) string { return e.id }

func byVersion(e *event) string { return fmt.Sprintf("%s %d", e.account, e.version) }

func (u *unordered) deliver(e *event, _ bool) {
	if e.garbage || u.discarded[e.place()] || u.applied[u.key(e)] != nil {
		return
	}
	if class := u.fault(e); class != "" {
		u.letters = append(u.letters, parked{e, class})
		return
	}
	u.applied[u.key(e)] = e // the id is used, even if the event changes no row
}

// apply returns false if the event cannot be applied.
func (u *unordered) apply(e *event) bool {
	if u.applied[u.key(e)] != nil || u.fault(e) != "" {
		return false
	}
	u.applied[u.key(e)] = e
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

func (u *unordered) discard(p place) { u.discarded[p] = true }

// takeBack applies a discarded event. It returns false if the event cannot be applied.
func (u *unordered) takeBack(e *event) bool {
	if e.garbage || !u.apply(e) {
		return false
	}
	delete(u.discarded, e.place())
	return true
}

// The method rebuilt computes the rows from the whole log and the operators' decisions. A rebuild
// may leave a row unchanged if an event was corrected or the position was set back. The oracle then
// leaves out the events that are missing in the row.
func (u *unordered) rebuilt(log [][]*event, found rebuiltRows) {
	known, live := u.letters, u.applied
	u.applied = map[string]*event{}
	for key, e := range u.corrected {
		u.applied[key] = e
	}
	for _, records := range log {
		for _, e := range records {
			u.deliver(e, true)
		}
	}
	u.letters = known
	got, before := found.rows(), u.rows(live)
	for key, e := range u.applied {
		if row := u.row(e); live[key] == nil && (len(u.corrected) > 0 || found.rereading) && got[row] == before[row] {
			delete(u.applied, key)
		}
	}
}

func byDay(e *event) string { return e.at.UTC().Format(time.DateOnly) + " " + e.currency }

func byAccount(e *event) string { return e.account }

func statementRows(applied map[string]*event) map[string]string {
	rows := map[string]string{}
	for key, e := range applied {
		amount := "-"
		if e.funds() {
			amount = money(e.signed())
		}
		rows[key] = fmt.Sprint(e.id, " ", e.kind, " ", amount, " ", e.currency)
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

func countRows(applied map[string]*event) map[string]string {
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
		rows[id] = fmt.Sprint(n, " ", points[id])
	}
	return rows
}
