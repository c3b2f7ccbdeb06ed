package readmodel

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// EventKind is a projection whose events each stand for themselves. Label and Ready
// and Tables are what one has to say; the rest may be left out.
type EventKind struct {
	Label string // see Kind.Name
	// ReadyQuery answers what the database lacks, one a row.
	ReadyQuery string
	// Tables makes the table of one partition. No partition, for repairs, is the zero
	// one but for its projection.
	Tables func(Partition) EventTable
	// Flush is how many events one transaction takes in at most; 0: DefaultFlush.
	Flush int
	// Recent makes a partition's recent-event cache; nil: there is none.
	Recent func(RunConfig) Recent
	// Beside are the tasks that run beside the consuming; nil: none.
	Beside func(RunConfig) []Task
	// Told is what those tasks report; see Kind.Reports.
	Told Reports
	// Doubts answers, for an event that failed at some time and cannot be found in the
	// table, why it may have been taken in all the same; empty when that cannot be.
	// nil: what is not in the table was not taken in.
	Doubts func(ctx context.Context, db Querier) (func(failedAt time.Time) string, error)
	// Remembers is Kind.Memory.
	Remembers Memory
}

var _ Kind = EventKind{}

// DefaultFlush is enough for a transaction to be worth its commit, and little enough
// to be judged again without regret.
const DefaultFlush = 10_000

// Name implements Kind.
func (k EventKind) Name() string { return k.Label }

// FlushEvents implements Kind.
func (k EventKind) FlushEvents() int {
	if k.Flush > 0 {
		return k.Flush
	}
	return DefaultFlush
}

// Ready implements Kind.
func (k EventKind) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	return checkReady(ctx, pool, k.ReadyQuery)
}

// Open implements Kind.
func (k EventKind) Open(cfg RunConfig) func(Partition) Projection {
	return func(p Partition) Projection {
		p.Projection = k.Label
		events := EventsConfig{Pool: cfg.Pool, Partition: p, Table: k.Tables(p), Observer: cfg.Observer}
		if k.Recent != nil {
			events.Recent = k.Recent(cfg)
		}
		return NewEvents(events)
	}
}

// Tasks implements Kind.
func (k EventKind) Tasks(cfg RunConfig) []Task {
	if k.Beside == nil {
		return nil
	}
	return k.Beside(cfg)
}

// Reports implements Kind.
func (k EventKind) Reports() Reports { return k.Told }

// Letters implements Kind.
func (k EventKind) Letters(cfg RepairConfig) Letters {
	return &eventLetters{kind: k, cfg: cfg, table: k.Tables(Partition{Projection: k.Label})}
}

// Memory implements Kind.
func (k EventKind) Memory() Memory { return k.Remembers }
