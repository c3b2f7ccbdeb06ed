package readmodel

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/sql"
)

// querier is what reading needs: a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// LoadAccounts reads what the database knows of the given accounts, in one round
// trip. Accounts of which it knows nothing are left out.
func LoadAccounts(ctx context.Context, db querier, ids []string, firstVersion int64) ([]projection.Account, error) {
	known := make([]projection.Account, 0, len(ids))
	err := readAccounts(ctx, db, ids, firstVersion, func(a *projection.Account) {
		kept := *a
		kept.ID, kept.State.LastEventID = strings.Clone(a.ID), strings.Clone(a.State.LastEventID)
		known = append(known, kept)
	})
	return known, err
}

// readAccounts is LoadAccounts without keeping the accounts: each is handed to learn,
// and its texts are valid until learn returns.
func readAccounts(ctx context.Context, db querier, ids []string, firstVersion int64, learn func(*projection.Account)) error {
	holds := map[string]projection.Account{}
	b := &pgx.Batch{}
	b.Queue(sql.Query("load_holds"), ids).Query(func(rows pgx.Rows) error {
		h := projection.Account{State: projection.NewState(firstVersion)}
		_, err := pgx.ForEachRow(rows, []any{&h.ID, &h.Parked, &h.NextParked, &h.NextClass, &h.Overflowed}, func() error {
			holds[h.ID] = h
			return nil
		})
		return err
	})
	b.Queue(sql.Query("load_accounts"), ids).Query(func(rows pgx.Rows) error {
		return eachAccount(rows, func(a *projection.Account) {
			if h, held := holds[a.ID]; held {
				a.Parked, a.NextParked, a.NextClass, a.Overflowed = h.Parked, h.NextParked, h.NextClass, h.Overflowed
				delete(holds, h.ID)
			}
			learn(a)
		})
	})
	if err := db.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("load accounts: %w", err)
	}
	for _, h := range holds { // of accounts that have no balance row
		learn(&h)
	}
	return nil
}

// loadVersions reads the versions the given accounts have now.
func loadVersions(ctx context.Context, db querier, ids []string) (map[string]int64, error) {
	rows, err := db.Query(ctx, sql.Query("load_versions"), ids)
	if err != nil {
		return nil, fmt.Errorf("load versions: %w", err)
	}
	versions := make(map[string]int64, len(ids))
	var (
		id      string
		version int64
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &version}, func() error {
		versions[id] = version
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load versions: %w", err)
	}
	return versions, nil
}
