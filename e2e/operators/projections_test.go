package operators_test

import (
	"fmt"
	"strconv"
)

// oracle computes the rows that the table of one projection must contain.
type oracle interface {
	deliver(e *event, again bool)
	force(e *event) bool
	replay(only string)
	discard(places ...place)
	takeBack(e *event) bool
	rebuilt(log [][]*event, found rebuiltRows)
	snapshot() (restore func())
}

// These are the tables and the projection files of the two custom projections.
const ownTables = `
	CREATE TABLE counted (account_id text PRIMARY KEY, events bigint NOT NULL, points bigint NOT NULL);
	CREATE TABLE pointed (account_id text PRIMARY KEY, events bigint NOT NULL, points bigint NOT NULL, version bigint NOT NULL);`

const onceFile = `-- projection: random_once
-- mode: once
-- types: FundsCredited, FundsDebited
-- tables: counted
INSERT INTO counted (account_id, events, points)
SELECT account_id, count(*), sum((data->>'points')::bigint) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET events = counted.events + EXCLUDED.events, points = counted.points + EXCLUDED.points;
`

const orderedFile = `-- projection: random_ordered
-- mode: ordered
-- types: FundsCredited, FundsDebited
-- tables: pointed
INSERT INTO pointed (account_id, events, points, version)
SELECT account_id, count(*), sum((data->>'points')::bigint), max(version) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE
    SET events = pointed.events + EXCLUDED.events, points = pointed.points + EXCLUDED.points, version = EXCLUDED.version;
`

func number(points string) int64 {
	n, err := strconv.ParseInt(points, 10, 64)
	if err != nil {
		panic(err) // cannot happen: an event with this value is never applied
	}
	return n
}

// refusedAccount is the account whose rows a constraint refuses.
const refusedAccount = "busy-3"

// rules has the rules of this run that the oracles need.
type rules struct {
	refusing bool     // a constraint on the tables of the custom projections refuses rows of refusedAccount
	ignoring bool     // the type unknown is ignored
	factors  [2]int64 // by which the texts of the custom projections multiply points, once and ordered
	remapped bool     // the mapping was changed in this run
	means    string   // what the mapping says about the type unknown: a type, ignorable, or nothing
}

func (r *rules) ignores(e *event) bool {
	return e.kind == unknown && (r.ignoring || r.means == ignorable)
}

// The method read returns the event as the present mapping reads it.
func (r *rules) read(e *event) *event {
	if e.kind != unknown || r.means != credit {
		return e
	}
	as := *e
	as.kind, as.renamed = credit, true
	return &as
}

// ignored returns the variable of the environment with the ignored types.
func (r *rules) ignored() string {
	if r.ignoring {
		return "IGNORE_EVENT_TYPES=" + unknown
	}
	return "IGNORE_EVENT_TYPES="
}

func (r *rules) refused(e *event) string {
	if e.funds() && (e.points == many || r.refusing && e.account == refusedAccount) {
		return "rejected_by_database"
	}
	return ""
}

// balances returns the oracle of account_balance.
func balances(limit int, r *rules) *ordered {
	return newOrdered(limit, r.bankFault, func(s *state, e *event) string {
		if r.ignores(e) {
			return ""
		}
		if class := r.bankFault(e); class != "" { // the mapping has changed since the event was parked
			return class
		}
		e = r.read(e)
		if s.currency != "" && s.currency != e.currency {
			return "currency_mismatch"
		}
		s.currency = e.currency
		s.balance += e.signed()
		if e.kind == opened || e.kind == closed {
			s.closed = e.kind == closed
		}
		return ""
	})
}

// pointsInOrder returns the oracle of the ordered custom projection.
func pointsInOrder(limit int, r *rules) *ordered {
	return newOrdered(limit, noFault, func(s *state, e *event) string {
		if e = r.read(e); !e.funds() {
			return ""
		}
		if class := r.refused(e); class != "" {
			return class
		}
		s.points += number(e.points)
		s.count++
		return ""
	})
}

func statements(r *rules) *unordered {
	return newUnordered(byVersion, r, r.bankFault, byVersion, statementRows)
}

func turnovers(r *rules) *unordered { return newUnordered(byID, r, r.bankFault, byDay, turnoverRows) }

func counts(r *rules) *unordered { return newUnordered(byID, r, r.refused, byAccount, r.countRows) }

// These queries return the tables in the row format of the oracles.
const (
	balanceQuery = `SELECT account_id, concat_ws(' ', version, balance, currency, status, coalesce(last_event_id, '-'),
		CASE WHEN stale THEN 'waits for ' || waiting_for_version END) FROM account_balance_current`
	statementQuery = `SELECT account_id || ' ' || version, concat_ws(' ', event_id, event_type, coalesce(amount::text, '-'), currency) FROM account_statement`
	turnoverQuery  = `SELECT day || ' ' || currency, concat_ws(' ', credited, debited, events) FROM daily_turnover`
	countQuery     = `SELECT account_id, events || ' ' || points FROM counted`
	orderedQuery   = `SELECT account_id, concat_ws(' ', a.version, coalesce(a.last_event_id, '-'), 'has', coalesce(p.events, 0), coalesce(p.points, 0),
		CASE WHEN h.expected_version IS NOT NULL THEN 'waits for ' || h.expected_version END)
		FROM (SELECT * FROM projection_account WHERE projection = 'random_ordered') a FULL JOIN pointed p USING (account_id)
		FULL JOIN (SELECT * FROM projection_hold WHERE projection = 'random_ordered') h USING (account_id)`
)

func (a *account) waitsFor() string {
	if !a.waits() {
		return ""
	}
	return fmt.Sprint("waits for ", a.version+1)
}

func (s *state) status() string {
	if s.closed {
		return "closed"
	}
	return "open"
}

// join joins the non-empty parts, as concat_ws does.
func join(parts ...any) (text string) {
	for _, p := range parts {
		part := fmt.Sprint(p)
		if part == "" {
			continue
		}
		if text != "" {
			text += " "
		}
		text += part
	}
	return text
}

func dash(id string) string {
	if id == "" {
		return "-"
	}
	return id
}

func balanceRows(o *ordered) map[string]string {
	rows := map[string]string{}
	for id, a := range o.accounts {
		switch {
		case a.version > 0 && a.currency == "":
			rows[id] = join(a.version, a.balance, a.status(), dash(a.lastID), a.waitsFor())
		case a.version > 0:
			rows[id] = join(a.version, money(a.balance), a.currency, a.status(), dash(a.lastID), a.waitsFor())
		case a.waits():
			rows[id] = join("-", a.waitsFor())
		}
	}
	return rows
}

func (r *rules) orderedRows(o *ordered) map[string]string {
	rows := map[string]string{}
	for id, a := range o.accounts {
		switch {
		case a.version > 0:
			rows[id] = join(a.version, dash(a.lastID), "has", a.count, r.factors[1]*a.points, a.waitsFor())
		case a.waits():
			rows[id] = join("-", "has 0 0", a.waitsFor())
		}
	}
	return rows
}
