package balance

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/repair"
)

// OrderedDefinition is a custom projection that gets the events of an account in the order of their
// versions. It uses the rules of account_balance, but other tables, which have no balances.
type OrderedDefinition struct {
	Label string // see Definition.Name
	// ReadyQuery and Check are as in appended.Definition.
	ReadyQuery string
	Check      func(context.Context, *pgxpool.Pool) error
	Writer     accountdb.CustomWriter
	// RebuildTables and Rebuildable are as in appended.Definition.
	RebuildTables []readmodel.RebuildTable
	Rebuildable   func(context.Context, *pgxpool.Pool) error
}

var _ readmodel.Definition = OrderedDefinition{}

// Name implements Definition.
func (d OrderedDefinition) Name() string { return d.Label }

// FlushEvents implements Definition.
func (OrderedDefinition) FlushEvents() int { return readmodel.DefaultFlush }

// Ready implements Definition.
func (d OrderedDefinition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	if err := readmodel.CheckDatabase(ctx, pool, d.ReadyQuery); err != nil {
		return err
	}
	return d.Check(ctx, pool)
}

// Open implements Definition.
func (d OrderedDefinition) Open(cfg readmodel.RunConfig) func(readmodel.Partition) session.Projection {
	balance := Config{
		Projection: d.Label, Custom: d.Writer,
		Pool: cfg.Pool, Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, ParkBytes: cfg.ParkBytes,
		CacheBytes: cfg.CacheBytes,
		Breaker:    cfg.Breaker, Decisions: cfg.Decisions,
	}
	return func(p readmodel.Partition) session.Projection { return New(balance, p) }
}

// Tasks implements Definition. The task counts the parked events.
func (d OrderedDefinition) Tasks(cfg readmodel.RunConfig) []readmodel.Task {
	return []readmodel.Task{countParked(cfg, d.Label)}
}

// Stores implements Definition.
func (OrderedDefinition) Stores() readmodel.Stores { return readmodel.Stores{Accounts: true} }

// Replayer implements Definition.
func (d OrderedDefinition) Replayer(cfg readmodel.RepairConfig) readmodel.Replayer {
	return repair.NewCustom(cfg, d.Label, d.Writer)
}

// Memory implements Definition. It is nil, because an account's version shows which events were
// applied.
func (OrderedDefinition) Memory() readmodel.Memory { return nil }

// Rebuilds implements Definition.
func (d OrderedDefinition) Rebuilds() []readmodel.RebuildTable { return d.RebuildTables }

// Custom implements Definition.
func (OrderedDefinition) Custom() bool { return true }
