package appended

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/readmodel"
)

// Definition is a projection of independent events. Label, ReadyQuery
// and Tables are what one has to say; the rest may be left out.
type Definition struct {
	Label string // see Definition.Name
	// ReadyQuery returns what the database lacks, one item per row.
	ReadyQuery string
	// Check fails when the database lacks what else the projection needs; nil: nothing.
	Check func(context.Context, *pgxpool.Pool) error
	// Tables makes the table of one partition. Repairs have none: of their Partition only the
	// projection is set.
	Tables func(readmodel.Partition) Table
	// Flush is how many events one transaction has at most; 0: DefaultFlush.
	Flush int
	// Recent makes a partition's recent-event cache; nil: there is none.
	Recent func(readmodel.RunConfig) Recent
	// Background are the tasks that run next to the consumers; nil: none.
	Background func(readmodel.RunConfig) []readmodel.Task
	// Told is what those tasks report; see Definition.Reports.
	Told readmodel.Reports
	// Doubts answers, for an event that failed at some time and cannot be found in the
	// table, why it may have been processed all the same; empty when that cannot be.
	// nil: what is not in the table was not processed.
	Doubts func(ctx context.Context, db readmodel.Querier) (func(failedAt time.Time) string, error)
	// Remembers is Definition.Memory.
	Remembers readmodel.Memory
	// RebuildTables is Definition.Rebuilds.
	RebuildTables []readmodel.RebuildTable
	// Own: it is a custom projection, and the audit trail names it.
	Own bool
	// Rebuildable fails when a rebuild, whose tables the pool sees first, would write others;
	// nil: it does not.
	Rebuildable func(context.Context, *pgxpool.Pool) error
}

var _ readmodel.Definition = Definition{}

// Name implements Definition.
func (k Definition) Name() string { return k.Label }

// FlushEvents implements Definition.
func (k Definition) FlushEvents() int {
	if k.Flush > 0 {
		return k.Flush
	}
	return readmodel.DefaultFlush
}

// Ready implements Definition.
func (k Definition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	if err := readmodel.CheckDatabase(ctx, pool, k.ReadyQuery); err != nil || k.Check == nil {
		return err
	}
	return k.Check(ctx, pool)
}

// Open implements Definition.
func (k Definition) Open(cfg readmodel.RunConfig) func(readmodel.Partition) session.Projection {
	return func(p readmodel.Partition) session.Projection {
		p.Projection = k.Label
		events := Config{Pool: cfg.Pool, Partition: p, Table: k.Tables(p), Observer: cfg.Observer, Breaker: cfg.Breaker, Decisions: cfg.Decisions}
		if k.Recent != nil {
			events.Recent = k.Recent(cfg)
		}
		return New(events)
	}
}

// Tasks implements Definition.
func (k Definition) Tasks(cfg readmodel.RunConfig) []readmodel.Task {
	if k.Background == nil {
		return nil
	}
	return k.Background(cfg)
}

// Reports implements Definition.
func (k Definition) Reports() readmodel.Reports { return k.Told }

// Replayer implements Definition.
func (k Definition) Replayer(cfg readmodel.RepairConfig) readmodel.Replayer {
	return &replayer{kind: k, cfg: cfg, table: k.Tables(readmodel.Partition{Projection: k.Label})}
}

// Memory implements Definition.
func (k Definition) Memory() readmodel.Memory { return k.Remembers }

// Rebuilds implements Definition.
func (k Definition) Rebuilds() []readmodel.RebuildTable { return k.RebuildTables }

// Custom implements Definition.
func (k Definition) Custom() bool { return k.Own }
