package balance

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/readmodel"
	"projector/readmodel/repair"
	"projector/sql"
)

// Definition is the account_balance projection.
type Definition struct{}

var _ readmodel.Definition = Definition{}

// Name implements Definition.
func (Definition) Name() string { return readmodel.BalanceName }

// FlushEvents implements Definition. The result is 0, so the number of events in a flush has no
// fixed limit. Many events of an account become one row, so large flushes are best.
func (Definition) FlushEvents() int { return 0 }

// Ready implements Definition.
func (Definition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	return CheckReady(ctx, pool)
}

// Open implements Definition.
func (Definition) Open(cfg readmodel.RunConfig) func(readmodel.Partition) session.Projection {
	balance := Config{
		Pool: cfg.Pool, Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, ParkBytes: cfg.ParkBytes,
		CacheBytes: cfg.CacheBytes,
		Breaker:    cfg.Breaker, Group: NewGroup(cfg.Pool, cfg.Busy), Changed: cfg.Changed, Decisions: cfg.Decisions,
	}
	if cfg.IndexBytes > 0 {
		balance.Versions = NewVersionReader(VersionReaderConfig{Pool: cfg.Pool, Bytes: cfg.IndexBytes, Stopping: cfg.Stopping, Log: cfg.Log})
	}
	return func(p readmodel.Partition) session.Projection { return New(balance, p) }
}

// countParkedEvery is the interval between counts of the parked events.
const countParkedEvery = 5 * time.Second

// Tasks implements Definition. The task counts the parked events.
func (Definition) Tasks(cfg readmodel.RunConfig) []readmodel.Task {
	return []readmodel.Task{countParked(cfg, readmodel.BalanceName)}
}

// countParked returns the task that reports the number of parked events.
func countParked(cfg readmodel.RunConfig, name string) readmodel.Task {
	return readmodel.Task{Name: "count parked events", Every: countParkedEvery, Run: func(ctx context.Context) error {
		parked, err := readmodel.CountParked(ctx, cfg.Pool, name)
		if err == nil {
			cfg.Observer.Parked(parked)
		}
		return err
	}}
}

// Stores implements Definition.
func (Definition) Stores() readmodel.Stores { return readmodel.Stores{Accounts: true} }

// Replayer implements Definition.
func (Definition) Replayer(cfg readmodel.RepairConfig) readmodel.Replayer {
	return repair.New(cfg)
}

// Memory implements Definition. It is nil, because an account's version shows which events were
// applied.
func (Definition) Memory() readmodel.Memory { return nil }

// Rebuilds implements Definition. For these tables, package rebuild compares whole accounts instead
// of rows.
func (Definition) Rebuilds() []readmodel.RebuildTable {
	return []readmodel.RebuildTable{{Name: readmodel.BalanceName}, {Name: "parked_event"}}
}

// Custom implements Definition.
func (Definition) Custom() bool { return false }

// CheckReady returns an error if the database cannot be reached or written, lacks a grant that the
// balances need, or has another schema.
func CheckReady(ctx context.Context, pool *pgxpool.Pool) error {
	return readmodel.CheckDatabase(ctx, pool, sql.Query("check_ready"))
}
