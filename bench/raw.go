package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// rawCmd is the raw limit: what PostgreSQL takes of the projector's own statements when
// each event is a row and nothing else has to be done.
type rawCmd struct {
	Workload string
	Scale    float64
	Database string `env:"DATABASE_URL"`
}

const (
	rawLanes = 2    // connections, each with the events of half the accounts, in order
	rawRows  = 2000 // a statement
)

// Run implements a limit.
func (c *rawCmd) Run(ctx context.Context, std *streams) error {
	w, err := workloadNamed(c.Workload, c.Scale)
	if err != nil {
		return err
	}
	conns := make([]*pgx.Conn, rawLanes) // closed by the end of the process
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, c.Database); err != nil {
			return err
		}
	}
	lanes := w.table().raw(&w)
	runtime.GC()
	debug.SetGCPercent(-1) // the rows are there already: collecting would only slow the limit down
	debug.SetMemoryLimit(math.MaxInt64)
	return serve(std, func() (answer, error) {
		start := time.Now()
		err := writeLanes(ctx, conns, lanes)
		return answer{Seconds: time.Since(start).Seconds(), Events: w.events}, err
	})
}

func writeLanes(ctx context.Context, conns []*pgx.Conn, lanes [][]*pgx.Batch) error {
	failures := make([]error, len(conns))
	var writing sync.WaitGroup
	for i, conn := range conns {
		writing.Go(func() {
			for _, batch := range lanes[i] {
				if failures[i] = conn.SendBatch(ctx, batch).Close(); failures[i] != nil {
					return
				}
			}
		})
	}
	writing.Wait()
	return errors.Join(failures...)
}

// rawRow is one event as a row: the account's state behind it.
type rawRow struct {
	account int
	version int64
	minor   int64
	event   string
	at      time.Time
}

// lane gathers one connection's batches. An account may be once in a statement, so
// an event that comes too soon waits for the next; so do those behind it.
type lane struct {
	batches [][]any
	rows    []rawRow
	later   []rawRow
	in      map[int]struct{}
	ids     []string
}

// rawBatches lays out a workload as the arguments of upsert_balance.sql, one list of
// batches a lane.
func rawBatches(w *workload) [][][]any {
	ids := make([]string, w.accounts)
	for i := range ids {
		ids[i] = accountID(i)
	}
	lanes := make([]*lane, rawLanes)
	for i := range lanes {
		lanes[i] = &lane{in: map[int]struct{}{}, ids: ids}
	}
	g := newGenerator(w)
	var c change
	for range w.events {
		g.next(&c)
		lanes[c.account%rawLanes].add(rawRow{c.account, int64(c.version), c.balance, string(c.id[:]), c.at})
	}
	batches := make([][][]any, rawLanes)
	for i, l := range lanes {
		for len(l.rows) > 0 {
			l.cut()
		}
		batches[i] = l.batches
	}
	return batches
}

func (l *lane) add(r rawRow) {
	if _, taken := l.in[r.account]; taken {
		l.later = append(l.later, r)
		return
	}
	l.in[r.account] = struct{}{}
	l.rows = append(l.rows, r)
	if len(l.rows) == rawRows {
		l.cut()
	}
}

// cut ends a batch, sorted by account as the projector's are.
func (l *lane) cut() {
	slices.SortFunc(l.rows, func(a, b rawRow) int { return cmp.Compare(a.account, b.account) })
	l.batches = append(l.batches, l.columns())
	waiting := l.later
	l.rows, l.later = l.rows[:0], nil
	clear(l.in)
	for _, r := range waiting {
		l.add(r)
	}
}

func (l *lane) columns() []any {
	n := len(l.rows)
	ids, currencies, events := make([]string, n), make([]string, n), make([]string, n)
	minor, versions, digits := make([]int64, n), make([]int64, n), make([]int16, n)
	closed, at := make([]bool, n), make([]time.Time, n)
	for i, r := range l.rows {
		ids[i], currencies[i], events[i] = l.ids[r.account], "EUR", r.event
		minor[i], versions[i], digits[i], at[i] = r.minor, r.version, 2, r.at
	}
	return []any{ids, currencies, minor, digits, versions, closed, events, at}
}
