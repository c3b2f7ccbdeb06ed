package readmodel

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/projection"
)

// Take gives events to a projection of one's own, within the transaction that makes their
// versions durable; they are in the order of their application, and it may change that. It
// sends what is queued.
type Take func(ctx context.Context, tx *Tx, events []projection.TakenEvent) error

func (t Take) events(ctx context.Context, tx *Tx, events []projection.TakenEvent) error {
	if t == nil || len(events) == 0 {
		return nil
	}
	return t(ctx, tx, events)
}

// OrderedDefinition is a projection of one's own that is given events in the order of their
// versions: what account_balance does with accounts, in tables of its own and without money.
type OrderedDefinition struct {
	Label string // see Definition.Name
	// ReadyQuery and Check are those of appended.Definition.
	ReadyQuery string
	Check      func(context.Context, *pgxpool.Pool) error
	Take       Take
	// RebuildTables and Rebuildable are those of appended.Definition.
	RebuildTables []RebuildTable
	Rebuildable   func(context.Context, *pgxpool.Pool) error
}

var _ Definition = OrderedDefinition{}

// Name implements Definition.
func (d OrderedDefinition) Name() string { return d.Label }

// FlushEvents implements Definition.
func (OrderedDefinition) FlushEvents() int { return DefaultFlush }

// Ready implements Definition.
func (d OrderedDefinition) Ready(ctx context.Context, pool *pgxpool.Pool) error {
	if err := CheckDatabase(ctx, pool, d.ReadyQuery); err != nil {
		return err
	}
	return d.Check(ctx, pool)
}

// Open implements Definition.
func (d OrderedDefinition) Open(cfg RunConfig) func(Partition) session.Projection {
	balance := BalanceConfig{
		Projection: d.Label, Take: d.Take,
		Pool: cfg.Pool, Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, ParkBytes: cfg.ParkBytes,
		CacheBytes: cfg.CacheBytes,
		Breaker:    cfg.Breaker, Decisions: cfg.Decisions,
	}
	return func(p Partition) session.Projection { return NewBalance(balance, p) }
}

// Tasks implements Definition: what waits behind holes is counted.
func (d OrderedDefinition) Tasks(cfg RunConfig) []Task { return []Task{countParked(cfg, d.Label)} }

// Reports implements Definition.
func (OrderedDefinition) Reports() Reports { return Reports{Parked: true} }

// Replayer implements Definition.
func (d OrderedDefinition) Replayer(cfg RepairConfig) Replayer {
	return balanceReplayer{NewCustomRepair(cfg, d.Label, d.Take)}
}

// Memory implements Definition: an account's version tells.
func (OrderedDefinition) Memory() Memory { return nil }

// Rebuilds implements Definition.
func (d OrderedDefinition) Rebuilds() []RebuildTable { return d.RebuildTables }

// Custom implements Definition.
func (OrderedDefinition) Custom() bool { return true }

// Skipper is a Replayer of a projection that versions are passed over in.
type Skipper interface {
	// PlanSkip returns what a Skip would do now, or a *SkipRefused.
	PlanSkip(ctx context.Context, s Skip) (SkipPlan, error)
	// Skip passes over a version if it is exactly the one the account expects, then heals
	// what waits behind it.
	Skip(ctx context.Context, s Skip) (Skipped, error)
	// PlanUnskip returns the account as an Unskip would leave it now, or an *UnskipRefused.
	PlanUnskip(ctx context.Context, s Skip) (UnskipPlan, error)
	// Unskip takes back the last skip of an account, if nothing was applied after it.
	Unskip(ctx context.Context, s Skip) error
	// SkipAgain skips a version that was skipped before, in tables that are built again.
	SkipAgain(ctx context.Context, s Skip, known, seen bool) (passed bool, err error)
}

var _ Skipper = balanceReplayer{}
