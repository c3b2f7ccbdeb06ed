package main

import (
	"cmp"
	_ "embed"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"projector/readmodel/turnover"
	"projector/sql"
)

// upsertBalance is the ruler that must not move: the upsert the projector had at first.
//
//go:embed upsert_balance.sql
var upsertBalance string

// rawBalances lays events out as upserts of their account's state.
func rawBalances(w *workload) [][]*pgx.Batch {
	lanes := make([][]*pgx.Batch, rawLanes)
	for i, batches := range rawBatches(w) {
		for _, args := range batches {
			b := &pgx.Batch{}
			b.Queue(upsertBalance, args...)
			lanes[i] = append(lanes[i], b)
		}
	}
	return lanes
}

// rawEvents cuts a workload into batches, each lane with the events of half the
// accounts, and lays out each.
func rawEvents(w *workload, layOut func([]change) *pgx.Batch) [][]*pgx.Batch {
	lanes, waiting := make([][]*pgx.Batch, rawLanes), make([][]change, rawLanes)
	cut := func(i int) {
		if len(waiting[i]) > 0 {
			lanes[i] = append(lanes[i], layOut(waiting[i]))
			waiting[i] = waiting[i][:0]
		}
	}
	w.eachChange(func(c *change) {
		i := c.account % rawLanes
		if waiting[i] = append(waiting[i], *c); len(waiting[i]) == rawRows {
			cut(i)
		}
	})
	for i := range lanes {
		cut(i)
	}
	return lanes
}

func (c *change) kind() string {
	switch {
	case c.cents > 0:
		return "FundsCredited"
	case c.cents < 0:
		return "FundsDebited"
	}
	return "AccountOpened"
}

// rawStatements lays events out as rows of account_statement.
func rawStatements(w *workload) [][]*pgx.Batch {
	insert := sql.Query("statement_insert")
	return rawEvents(w, func(changes []change) *pgx.Batch {
		slices.SortFunc(changes, func(a, b change) int {
			return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.version, b.version))
		})
		n := len(changes)
		var (
			accounts, ids, kinds, currencies = make([]string, n), make([]string, n), make([]string, n), make([]string, n)
			versions, minor, digits          = make([]int64, n), make([]int64, n), make([]int16, n)
			at                               = make([]time.Time, n)
		)
		for i := range changes {
			c := &changes[i]
			accounts[i], ids[i], kinds[i], currencies[i] = accountID(c.account), string(c.id[:]), c.kind(), "EUR"
			versions[i], minor[i], digits[i], at[i] = int64(c.version), c.cents, 2, c.at
		}
		b := &pgx.Batch{}
		b.Queue(insert, accounts, versions, ids, kinds, minor, digits, currencies, at, ids)
		return b
	})
}

// rawTurnover lays events out as markers in the inbox and what they add to the day, in
// one transaction.
func rawTurnover(w *workload) [][]*pgx.Batch {
	mark, add := sql.Query("inbox_mark"), sql.Query("turnover_add")
	return rawEvents(w, func(changes []change) *pgx.Batch {
		slices.SortFunc(changes, func(a, b change) int { return strings.Compare(string(a.id[:]), string(b.id[:])) })
		ids := make([]string, len(changes))
		var credited, debited, events int64
		for i := range changes {
			ids[i] = string(changes[i].id[:])
			switch cents := changes[i].cents; {
			case cents > 0:
				credited, events = credited+cents, events+1
			case cents < 0:
				debited, events = debited-cents, events+1
			}
		}
		b := &pgx.Batch{}
		b.Queue(mark, turnover.Name, ids)
		b.Queue(add, []time.Time{epoch}, []string{"EUR"}, []int16{2}, numerics(credited), numerics(debited), []int64{events})
		return b
	})
}

func numerics(minor int64) []pgtype.Numeric {
	return []pgtype.Numeric{{Int: big.NewInt(minor), Valid: true}}
}
