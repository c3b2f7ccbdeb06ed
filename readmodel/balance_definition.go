package readmodel

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/sql"
)

// BalanceDefinition is the account_balance projection.
type BalanceDefinition struct{}

var _ Definition = BalanceDefinition{}

// Name implements Definition.
func (BalanceDefinition) Name() string { return BalanceName }

// FlushEvents implements Definition: many events of an account become one row, so the more
// are folded the better.
func (BalanceDefinition) FlushEvents() int { return 0 }

// Ready implements Definition.
func (BalanceDefinition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	return CheckReady(ctx, pool)
}

// Open implements Definition.
func (BalanceDefinition) Open(cfg RunConfig) func(Partition) session.Projection {
	balance := BalanceConfig{
		Pool: cfg.Pool, Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, ParkBytes: cfg.ParkBytes,
		CacheBytes: cfg.CacheBytes,
		Breaker:    cfg.Breaker, Group: NewGroup(cfg.Pool), Changed: cfg.Changed, Decisions: cfg.Decisions,
	}
	if cfg.IndexBytes > 0 {
		balance.Versions = NewVersionReader(VersionReaderConfig{Pool: cfg.Pool, Bytes: cfg.IndexBytes, Ends: cfg.Ends, Log: cfg.Log})
	}
	return func(p Partition) session.Projection { return NewBalance(balance, p) }
}

// countParkedEvery is how often the parked events are counted.
const countParkedEvery = 5 * time.Second

// Tasks implements Definition: what waits behind holes is counted.
func (BalanceDefinition) Tasks(cfg RunConfig) []Task {
	return []Task{countParked(cfg, BalanceName)}
}

// countParked tells again and again what waits behind holes.
func countParked(cfg RunConfig, name string) Task {
	return Task{Name: "count parked events", Every: countParkedEvery, Run: func(ctx context.Context) error {
		parked, err := CountParked(ctx, cfg.Pool, name)
		if err == nil {
			cfg.Observer.Parked(parked)
		}
		return err
	}}
}

// Reports implements Definition.
func (BalanceDefinition) Reports() Reports { return Reports{Parked: true} }

// Replayer implements Definition.
func (BalanceDefinition) Replayer(cfg RepairConfig) Replayer { return NewRepair(cfg) }

// Memory implements Definition: an account's version tells.
func (BalanceDefinition) Memory() Memory { return nil }

// Rebuilds implements Definition. Accounts are compared as a whole, by Shadow.
func (BalanceDefinition) Rebuilds() []RebuildTable {
	return []RebuildTable{{Name: BalanceName}, {Name: "parked_event"}}
}

// Custom implements Definition.
func (BalanceDefinition) Custom() bool { return false }

// CheckReady fails when the database cannot be reached, cannot be written, lacks a
// grant the balances need, or when their schema changed under the program.
func CheckReady(ctx context.Context, pool *pgxpool.Pool) error {
	return CheckDatabase(ctx, pool, sql.Query("check_ready"))
}
