package compare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/internal/testbank"
)

// Querier is a connection, a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Positions returns the group's next offset by partition, from the table projector_position.
func (w Reader) Positions(ctx context.Context, db Querier) (map[int32]int64, error) {
	rows, err := db.Query(ctx,
		"SELECT partition, next_offset FROM projector_position WHERE consumer_group = $1 AND topic = $2", w.Group, w.Topic)
	if err != nil {
		return nil, fmt.Errorf("positions: %w", err)
	}
	positions := map[int32]int64{}
	var (
		p    int32
		next int64
	)
	if _, err := pgx.ForEachRow(rows, []any{&p, &next}, func() error { positions[p] = next; return nil }); err != nil {
		return nil, fmt.Errorf("positions: %w", err)
	}
	return positions, nil
}

// Rows returns the rows of account_balance_current by account id, for accounts whose ids begin with
// a prefix.
func Rows(ctx context.Context, db Querier, prefix string) (map[string]testbank.Row, error) {
	rows, err := db.Query(ctx, `
		SELECT account_id, balance IS NOT NULL, coalesce(currency, ''), coalesce(balance::text, ''), coalesce(version, 0),
		       coalesce(status, ''), coalesce(last_event_id, ''), last_event_at, stale, coalesce(waiting_for_version, 0)
		FROM account_balance_current
		WHERE starts_with(account_id, $1)`, prefix)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	found := map[string]testbank.Row{}
	var (
		id string
		r  testbank.Row
		at *time.Time
	)
	into := []any{&id, &r.Exists, &r.Currency, &r.Balance, &r.Version, &r.Status, &r.LastEventID, &at, &r.Stale, &r.WaitingFor}
	_, err = pgx.ForEachRow(rows, into, func() error {
		row := r
		if at != nil {
			row.LastEventAt = at.UTC()
		}
		found[id] = row
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return found, nil
}

// Differences returns "" if the rows equal the oracle's rows. Otherwise it describes the
// differences.
func Differences(got map[string]testbank.Row, o *testbank.Oracle) string {
	want := o.Rows()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if row, exists := got[id]; !exists || row != want[id] {
			lines = append(lines, fmt.Sprintf("%s:\n   got %+v\n  want %+v", id, row, want[id]))
		}
	}
	for id, row := range got {
		if _, known := want[id]; !known {
			lines = append(lines, fmt.Sprintf("%s: must not exist: %+v", id, row))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("%d accounts differ, the first of them:\n%s", len(lines), strings.Join(lines[:min(5, len(lines))], "\n"))
}
