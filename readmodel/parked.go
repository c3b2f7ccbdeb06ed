package readmodel

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// ParkedSummary counts the events that wait for missing versions.
type ParkedSummary struct {
	Accounts  int64
	Events    int64
	Bytes     int64 // of all parked events
	OldestGap time.Duration
	ByClass   map[string]int64 // accounts by the class of the event that caused the gap
}

// CountParked counts the events of a projection that wait for missing versions.
func CountParked(ctx context.Context, pool *pgxpool.Pool, name string) (ParkedSummary, error) {
	s := ParkedSummary{ByClass: map[string]int64{}}
	tables := sql.AccountsOf(name)
	if err := pool.QueryRow(ctx, tables.Query("parked_bytes")).Scan(&s.Bytes); err != nil {
		return s, fmt.Errorf("count parked events: %w", err)
	}
	var (
		class            string
		accounts, events int64
		seconds          float64
	)
	into := []any{&class, &accounts, &events, &seconds}
	err := Each(ctx, pool, "count parked events", tables.Query("parked_summary"), nil, into, func() error {
		s.ByClass[class] = accounts
		s.Accounts, s.Events = s.Accounts+accounts, s.Events+events
		s.OldestGap = max(s.OldestGap, time.Duration(seconds*float64(time.Second)))
		return nil
	})
	return s, err
}
