package appended

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/readmodel"
)

// Definition is a projection of independent events. Label, ReadyQuery and Tables are required.
type Definition struct {
	Label string // see Definition.Name
	// ReadyQuery returns what the database lacks, one item per row.
	ReadyQuery string
	// Check returns an error if the database lacks something else that the projection needs. It may
	// be nil.
	Check func(context.Context, *pgxpool.Pool) error
	// Tables makes the table of one partition. In a repair, only the field Projection of the
	// Partition is set.
	Tables func(readmodel.Partition) Table
	// Recent makes a partition's recent-event cache. It may be nil.
	Recent func(readmodel.RunConfig) *Recent
	// Background returns the tasks that are repeated while consumers run. It may be nil.
	Background func(readmodel.RunConfig) []readmodel.Task
	// Doubts returns a function that is called for an event that is not in the table, with the time
	// at which the event failed. The function returns why the event may have been processed
	// nevertheless, or an empty string. If Doubts is nil, an event that is not in the table was not
	// processed.
	Doubts func(ctx context.Context, db readmodel.Querier) (func(failedAt time.Time) string, error)
	// Remembers is the result of the method Memory.
	Remembers readmodel.Memory
	// RebuildTables is the result of the method Rebuilds.
	RebuildTables []readmodel.RebuildTable
	// Own is true for a custom projection.
	Own bool
	// Rebuildable returns an error if a rebuild would write to other tables than the shadow tables.
	// The pool has the shadow tables first in its search_path. Rebuildable may be nil.
	Rebuildable func(context.Context, *pgxpool.Pool) error
}

var _ readmodel.Definition = Definition{}

// Name implements Definition.
func (k Definition) Name() string { return k.Label }

// FlushEvents implements Definition.
func (Definition) FlushEvents() int { return readmodel.DefaultFlush }

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

// Accounts implements Definition.
func (Definition) Accounts() bool { return false }

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
