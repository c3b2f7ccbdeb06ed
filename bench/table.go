package main

import (
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5"

	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// table is what a workload's events end up in.
type table struct {
	relation string
	// fingerprint sums up the final state, so that what stands in another's place
	// shows, too; want is what it must answer.
	fingerprint string
	want        func(w *workload, g *generator) string
	// raw lays the events out as the projector's own statements, a batch a
	// transaction, one list a connection.
	raw func(w *workload) [][]*pgx.Batch
}

// tables are those of the projections that are measured.
var tables = map[string]table{
	"": {"account_balance", fingerprintQuery, func(_ *workload, g *generator) string { return g.fingerprint() }, rawBalances},
	statement.Name: {"account_statement", `
		SELECT concat_ws(' ', count(*), sum(version * n), coalesce(sum(cents), 0), coalesce(sum(cents * version * n), 0))
		FROM (SELECT version::numeric AS version, trunc(amount * 100) AS cents, substr(account_id, 5)::numeric AS n
		      FROM account_statement) AS entries`, wantStatement, rawStatements},
	turnover.Name: {"inbox", `SELECT concat_ws(' ', day, trunc(credited * 100), trunc(debited * 100), events,
		(SELECT count(*) FROM inbox)) FROM daily_turnover`, wantTurnover, rawTurnover},
}

// table is where the workload's events end up.
func (w *workload) table() table { return tables[w.projection] }

// eachChange makes the workload's events anew.
func (w *workload) eachChange(fn func(*change)) {
	g := newGenerator(w)
	var c change
	for range w.events {
		g.next(&c)
		fn(&c)
	}
}

func wantStatement(w *workload, _ *generator) string {
	var versions, cents, weighted, term, factor big.Int
	w.eachChange(func(c *change) {
		factor.SetInt64(int64(c.version) * int64(c.account))
		versions.Add(&versions, &factor)
		term.SetInt64(c.cents)
		cents.Add(&cents, &term)
		weighted.Add(&weighted, term.Mul(&term, &factor))
	})
	return fmt.Sprint(w.events, " ", &versions, " ", &cents, " ", &weighted)
}

// wantTurnover is one line: all events of a workload are of one day, in one currency.
func wantTurnover(w *workload, _ *generator) string {
	var credited, debited, events int64
	w.eachChange(func(c *change) {
		switch {
		case c.cents > 0:
			credited += c.cents
			events++
		case c.cents < 0:
			debited -= c.cents
			events++
		}
	})
	return fmt.Sprint(epoch.Format("2006-01-02"), " ", credited, " ", debited, " ", events, " ", w.events)
}
