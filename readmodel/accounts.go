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
}

// LoadAccounts reads what the database knows of the given accounts, in one query,
// and hands each to learn. Accounts of which it knows nothing are left out.
func LoadAccounts(ctx context.Context, db querier, ids []string, firstVersion int64, learn func(projection.Account)) error {
	rows, err := db.Query(ctx, sql.Query("load_accounts"), ids)
	if err != nil {
		return fmt.Errorf("load accounts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanAccount(rows, firstVersion)
		if err != nil {
			return fmt.Errorf("load accounts: %w", err)
		}
		learn(a)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("load accounts: %w", err)
	}
	return nil
}

func scanAccount(rows pgx.Rows, firstVersion int64) (projection.Account, error) {
	a := projection.Account{State: projection.NewState(firstVersion)}
	var (
		currency string
		balance  pgtype.Numeric
		version  int64
		at       *time.Time
	)
	s := &a.State
	err := rows.Scan(&a.ID, &a.Exists, &currency, &balance, &version, &s.Closed, &s.LastEventID, &at,
		&a.Parked, &a.NextParked, &a.NextClass, &a.Overflowed)
	if err != nil || !a.Exists {
		return a, err
	}
	s.Version = version
	if at != nil {
		s.LastEventAt = at.UnixMicro()
	}
	if currency != "" {
		c, known := event.CurrencyByCode(currency)
		if !known {
			return a, fmt.Errorf("account_balance.currency: not an ISO 4217 code this program knows: %q", currency)
		}
		s.Currency = c
	}
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
