package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"math"
	"math/big"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"projector/readmodel/turnover"
	"projector/sql"
)

// rawCmd measures the raw limit. The limit is how fast PostgreSQL executes the projector's own
// statements if each event is a row and nothing else is done.
type rawCmd struct {
	Workload string
	Scale    float64
	Database string `env:"DATABASE_URL"`
}

const (
	rawLanes = 2    // number of connections; each processes half of the accounts
	rawRows  = 2000 // rows in one statement
)

func (c *rawCmd) Run(ctx context.Context, std *streams) error {
	w, err := workloadNamed(c.Workload, c.Scale)
	if err != nil {
		return err
	}
	conns := make([]*pgx.Conn, rawLanes) // they are closed when the process ends
	for i := range conns {
		if conns[i], err = w.connect(ctx, c.Database); err != nil {
			return err
		}
	}
	lanes := w.table().raw(&w)
	runtime.GC()
	debug.SetGCPercent(-1) // collection would only slow the limit down, because all rows are in memory already
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

// rawRow is one event as a row. The row has the account's state after the event.
type rawRow struct {
	account int
	version int64
	minor   int64
	event   string
	at      time.Time
}

// lane collects the batches of one connection. An account may occur only once in a statement. An
// event whose account is already in the batch waits for the next batch, and all later events of
// this account wait too.
type lane struct {
	batches [][]any
	rows    []rawRow
	later   []rawRow
	in      map[int]struct{}
	ids     []string
}

// rawBatches returns a workload's events as arguments of upsert_balance.sql. There is one list of
// batches for each lane.
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

// cut ends a batch and sorts it by account, as the projector does.
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

// upsertBalance is the projector's first upsert. It is never changed, so results of different
// versions of the projector can be compared.
//
//go:embed upsert_balance.sql
var upsertBalance string

// rawBalances converts events to upserts of the account's state.
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

// rawEvents divides a workload into batches of the given number of rows. The accounts are divided
// into parts, and each batch has events of one part only. Each lane has half of the parts. layOut
// converts each batch.
func rawEvents(w *workload, parts, rows int, layOut func([]change) *pgx.Batch) [][]*pgx.Batch {
	lanes, waiting := make([][]*pgx.Batch, rawLanes), make([][]change, parts)
	cut := func(i int) {
		if len(waiting[i]) > 0 {
			lanes[i%rawLanes] = append(lanes[i%rawLanes], layOut(waiting[i]))
			waiting[i] = waiting[i][:0]
		}
	}
	w.eachChange(func(c *change) {
		i := c.account % parts
		if waiting[i] = append(waiting[i], *c); len(waiting[i]) == rows {
			cut(i)
		}
	})
	for i := range waiting {
		cut(i)
	}
	return lanes
}

// rawStatements converts events to rows of account_statement.
func rawStatements(w *workload) [][]*pgx.Batch {
	insert := sql.Query("statement_insert")
	return rawEvents(w, rawLanes, rawRows, func(changes []change) *pgx.Batch {
		slices.SortFunc(changes, func(a, b change) int {
			return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.version, b.version))
		})
		n := len(changes)
		var (
			accounts, ids, kinds, currencies = make([]string, n), make([]string, n), make([]string, n), make([]string, n)
			versions, minor, digits          = make([]int64, n), make([]int64, n), make([]int16, n)
			at                               = make([]time.Time, n)
			partitions, offsets              = make([]int32, n), make([]int64, n)
		)
		for i := range changes {
			c := &changes[i]
			accounts[i], ids[i], kinds[i], currencies[i] = accountID(c.account), string(c.id[:]), c.kind(), "EUR"
			versions[i], minor[i], digits[i], at[i] = int64(c.version), c.cents, 2, c.at
			offsets[i] = int64(i)
		}
		b := &pgx.Batch{}
		b.Queue(insert, accounts, versions, ids, kinds, minor, digits, currencies, at, ids, partitions, offsets)
		return b
	})
}

// rawTurnover converts events to inbox rows and to additions to the daily sums, in one transaction.
func rawTurnover(w *workload) [][]*pgx.Batch {
	mark, add := sql.Query("inbox_mark"), sql.Query("turnover_add")
	return rawEvents(w, rawLanes, rawRows, func(changes []change) *pgx.Batch {
		slices.SortFunc(changes, func(a, b change) int { return strings.Compare(string(a.id[:]), string(b.id[:])) })
		ids := make([]string, len(changes))
		var day dayTurnover
		for i := range changes {
			ids[i] = string(changes[i].id[:])
			day.add(&changes[i])
		}
		b := &pgx.Batch{}
		b.Queue(mark, turnover.Name, ids)
		b.Queue(add, []time.Time{epoch}, []string{"EUR"}, []int16{2}, numerics(day.credited), numerics(day.debited), []int64{day.events})
		return b
	})
}

// dayTurnover is the turnover of all events that were added, in cents.
type dayTurnover struct{ credited, debited, events int64 }

func (t *dayTurnover) add(c *change) {
	switch {
	case c.cents > 0:
		t.credited, t.events = t.credited+c.cents, t.events+1
	case c.cents < 0:
		t.debited, t.events = t.debited-c.cents, t.events+1
	}
}

func numerics(minor int64) []pgtype.Numeric {
	return []pgtype.Numeric{{Int: big.NewInt(minor), Valid: true}}
}
