package readmodel

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
)

// BalanceName is the name of the account_balance projection.
const BalanceName = "account_balance"

// BalanceKind is the account_balance projection.
type BalanceKind struct{}

var _ Kind = BalanceKind{}

// Name implements Kind.
func (BalanceKind) Name() string { return BalanceName }

// FlushEvents implements Kind: many events of an account become one row, so the more
// are folded the better.
func (BalanceKind) FlushEvents() int { return 0 }

// Ready implements Kind.
func (BalanceKind) Ready(ctx context.Context, pool *pgxpool.Pool) error { return CheckReady(ctx, pool) }

// Open implements Kind.
func (BalanceKind) Open(cfg RunConfig) func(Partition) Projection {
	balance := BalanceConfig{
		Pool: cfg.Pool, Formats: cfg.Formats, FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, CacheBytes: cfg.CacheBytes,
		Group: NewGroup(cfg.Pool),
	}
	if cfg.FloorBytes > 0 {
		balance.Floors = NewFloorReader(FloorConfig{Pool: cfg.Pool, Bytes: cfg.FloorBytes, Ends: cfg.Ends, Log: cfg.Log})
	}
	return func(p Partition) Projection { return NewBalance(balance, p) }
}

// countParkedEvery is how often the parked events are counted.
const countParkedEvery = 5 * time.Second

// Tasks implements Kind: what waits behind holes is counted.
func (BalanceKind) Tasks(cfg RunConfig) []Task {
	return []Task{{Name: "count parked events", Every: countParkedEvery, Run: func(ctx context.Context) error {
		parked, err := CountParked(ctx, cfg.Pool)
		if err == nil {
			cfg.Observer.Parked(parked.Accounts, parked.Events, parked.OldestGap)
		}
		return err
	}}}
}

// Reports implements Kind.
func (BalanceKind) Reports() Reports { return Reports{Parked: true} }

// Letters implements Kind.
func (BalanceKind) Letters(cfg RepairConfig) Letters { return balanceLetters{NewRepair(cfg)} }

// Memory implements Kind: an account's version tells.
func (BalanceKind) Memory() Memory { return nil }

// balanceLetters deals with the dead letters of account_balance.
type balanceLetters struct{ *Repair }

// Standings implements Letters.
func (l balanceLetters) Standings(ctx context.Context, subjects []Subject) ([]projection.Standing, error) {
	var ids []string
	for i := range subjects {
		if id := subjects[i].AccountID; storable(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	states, err := LoadStates(ctx, l.cfg.Pool, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	standings := make([]projection.Standing, len(subjects))
	for i := range subjects {
		s := &subjects[i]
		state, known := states[s.AccountID]
		if !known {
			state = projection.NewState(l.cfg.FirstVersion)
		}
		standings[i] = state.StandingTo(s.Version, s.Decoded)
	}
	return standings, nil
}

// storable reports whether PostgreSQL can hold the text; it knows nothing of others.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// Plan implements Letters.
func (l balanceLetters) Plan(ctx context.Context, records []*RepairRecord) error {
	return l.Repair.Plan(ctx, Runs(records))
}

// Apply implements Letters.
func (l balanceLetters) Apply(ctx context.Context, records []*RepairRecord, observe func(Step)) error {
	return l.Repair.Apply(ctx, Runs(records), observe)
}
