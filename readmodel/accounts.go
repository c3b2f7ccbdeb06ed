package readmodel

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"projector/projection"
	"projector/projection/event"
	"projector/sql"
)

// querier is what reading needs: a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// LoadAccounts reads what the database knows of the given accounts, in one round
// trip. Accounts of which it knows nothing are left out.
func LoadAccounts(ctx context.Context, db querier, ids []string, firstVersion int64) ([]projection.Account, error) {
	known := make([]projection.Account, 0, len(ids))
	holds := map[string]projection.Account{}
	b := &pgx.Batch{}
	b.Queue(sql.Query("load_accounts"), ids).Query(func(rows pgx.Rows) (err error) {
		known, err = pgx.AppendRows(known, rows, scanAccount)
		return err
	})
	b.Queue(sql.Query("load_holds"), ids).Query(func(rows pgx.Rows) error {
		h := projection.Account{State: projection.NewState(firstVersion)}
		_, err := pgx.ForEachRow(rows, []any{&h.ID, &h.Parked, &h.NextParked, &h.NextClass, &h.Overflowed}, func() error {
			holds[h.ID] = h
			return nil
		})
		return err
	})
	if err := db.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("load accounts: %w", err)
	}
	return withHolds(known, holds), nil
}

// withHolds adds what is parked, also of accounts that have no balance row.
func withHolds(known []projection.Account, holds map[string]projection.Account) []projection.Account {
	if len(holds) == 0 {
		return known
	}
	for i := range known {
		a := &known[i]
		if h, held := holds[a.ID]; held {
			a.Parked, a.NextParked, a.NextClass, a.Overflowed = h.Parked, h.NextParked, h.NextClass, h.Overflowed
			delete(holds, a.ID)
		}
	}
	for _, h := range holds {
		known = append(known, h)
	}
	return known
}

func scanAccount(row pgx.CollectableRow) (projection.Account, error) {
	a := projection.Account{Exists: true}
	var (
		currency string
		balance  pgtype.Numeric
		at       *time.Time
	)
	s := &a.State
	if err := row.Scan(&a.ID, &currency, &balance, &s.Version, &s.Closed, &s.LastEventID, &at); err != nil {
		return a, err
	}
	s.LastEventAt = projection.NoTime
	if at != nil {
		s.LastEventAt = at.UnixMicro()
	}
	if currency != "" {
		c, known := event.CurrencyByCode(currency)
		if !known {
			return a, fmt.Errorf("account_balance.currency: %q is not an ISO 4217 code this program knows", currency)
		}
		s.Currency = c
	}
	var err error
	s.Balance, err = minorUnits(balance, s.Currency.Digits())
	return a, err
}

// minorUnits turns a stored balance into minor units.
func minorUnits(n pgtype.Numeric, digits int) (int64, error) {
	if !n.Valid || n.NaN || n.InfinityModifier != pgtype.Finite {
		return 0, fmt.Errorf("account_balance.balance: not a finite number")
	}
	shift := int64(n.Exp) + int64(digits)
	if shift < -64 || shift > 64 {
		return 0, fmt.Errorf("account_balance.balance: out of range")
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(shift, -shift)), nil)
	minor, rest := new(big.Int), new(big.Int)
	if shift >= 0 {
		minor.Mul(n.Int, power)
	} else {
		minor.QuoRem(n.Int, power, rest)
	}
	if rest.Sign() != 0 || !minor.IsInt64() {
		return 0, fmt.Errorf("account_balance.balance: more decimals than the currency has, or out of range")
	}
	return minor.Int64(), nil
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
