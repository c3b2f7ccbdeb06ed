package balance

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/repair"
	"projector/sql"
)

// Definition is the account_balance projection. If Writer is set, it is a custom projection that
// gets the events of an account in the order of their versions. Such a projection uses the same
// rules, but other tables, which have no balances. The other fields are only for custom projections.
type Definition struct {
	Writer accountdb.CustomWriter
	// These fields have the same meaning as in appended.Definition.
	Label         string
	Check         func(context.Context, *pgxpool.Pool) error
	RebuildTables []readmodel.RebuildTable
	Rebuildable   func(context.Context, *pgxpool.Pool) error
}

var _ readmodel.Definition = Definition{}

// Name implements Definition.
func (d Definition) Name() string { return cmp.Or(d.Label, readmodel.BalanceName) }

// FlushEvents implements Definition. For account_balance, the number of events in a flush has no
// fixed limit. Many events of an account become one row, so large flushes are best.
func (d Definition) FlushEvents() int {
	if d.Custom() {
		return readmodel.DefaultFlush
	}
	return 0
}

// Ready implements Definition.
func (d Definition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	if !d.Custom() {
		return readmodel.CheckDatabase(ctx, pool, sql.Query("check_ready"))
	}
	if err := readmodel.CheckDatabase(ctx, pool, sql.Query("custom_ready")); err != nil {
		return err
	}
	return d.Check(ctx, pool)
}

// Open implements Definition.
func (d Definition) Open(cfg readmodel.RunConfig) func(readmodel.Partition) session.Projection {
	balance := Config{RunConfig: cfg, Projection: d.Label, Custom: d.Writer}
	if d.Custom() {
		balance.Changed = nil
	} else {
		balance.Group = NewGroup(cfg.Pool, cfg.Busy)
		if cfg.IndexBytes > 0 {
			balance.Versions = NewVersionReader(cfg)
		}
	}
	return func(p readmodel.Partition) session.Projection { return New(balance, p) }
}

const (
	// countParkedEvery is the interval between counts of the parked events, and countParkedWithin is
	// the time limit of one count. A count reads all parked events. Some millions of them take many
	// seconds, and this is when people need the count.
	countParkedEvery, countParkedWithin = 5 * time.Second, time.Minute
	// The next count begins at the earliest after countParkedShare times the duration of the last
	// one, but at the latest after countParkedRest. So slow counts cost the database little.
	countParkedShare, countParkedRest = 10, 5 * time.Minute
)

// Tasks implements Definition. The task counts the parked events.
func (d Definition) Tasks(cfg readmodel.RunConfig) []readmodel.Task {
	var (
		rest time.Time // no count begins before
		last error     // of the last count
	)
	return []readmodel.Task{{Name: "count parked events", Every: countParkedEvery, Within: countParkedWithin, Run: func(ctx context.Context) error {
		began := time.Now()
		if began.Before(rest) {
			return last
		}
		parked, err := readmodel.CountParked(ctx, cfg.Pool, d.Name())
		if err == nil {
			cfg.Observer.Parked(parked)
		}
		rest, last = time.Now().Add(min(countParkedShare*time.Since(began), countParkedRest)), err
		return err
	}}}
}

// Accounts implements Definition.
func (Definition) Accounts() bool { return true }

// Replayer implements Definition.
func (d Definition) Replayer(cfg readmodel.RepairConfig) readmodel.Replayer {
	if d.Custom() {
		return repair.NewCustom(cfg, d.Label, d.Writer)
	}
	return repair.New(cfg)
}

// Memory implements Definition. It is nil, because an account's version shows which events were
// applied.
func (Definition) Memory() readmodel.Memory { return nil }

// Rebuilds implements Definition. For the tables of account_balance, package rebuild compares whole
// accounts instead of rows.
func (d Definition) Rebuilds() []readmodel.RebuildTable {
	if d.Custom() {
		return d.RebuildTables
	}
	return []readmodel.RebuildTable{{Name: readmodel.BalanceName}, {Name: "parked_event"}}
}

// Custom implements Definition.
func (d Definition) Custom() bool { return d.Writer != nil }
