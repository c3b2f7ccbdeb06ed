package accountdb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/event"
	"projector/readmodel"
	"projector/sql"
)

// ErrUnknownAccount says that the read model knows nothing of an account.
var ErrUnknownAccount = errors.New("no event of the account has been applied or parked")

// AccountView is an account as its readers see it, and what it waits for.
type AccountView struct {
	ID      string
	Balance *BalanceView // nil: its first version is missing
	Hold    *Hold        // nil: it waits for nothing
	Parked  []ParkedView // in the order of their versions
}

// BalanceView is a row of account_balance.
type BalanceView struct {
	Currency    string // empty: not fixed yet
	Balance     string // decimal, with the currency's number of decimals
	Version     int64
	Status      string
	LastEventID string     // empty: not known
	LastEventAt *time.Time // nil: not known
}

// Hold is what an account waits for.
type Hold struct {
	AccountID string
	Expected  int64 // the version that is missing
	Received  int64 // the lowest version that is known after it, or in its place
	Class     event.Class
	Waiting   int64 // events
	Beyond    int64 // of them, those beyond the park limit: in the DLQ only
	Since     time.Time
	Age       time.Duration
}

// ParkedView is a parked event without its payload.
type ParkedView struct {
	Version   int64
	Class     event.Class
	EventID   string
	Topic     string
	Partition int32
	Offset    int64
}

// ShowAccount reads an account of a projection with all that waits for it, or answers
// ErrUnknownAccount. In a custom projection it has no money and no status.
func ShowAccount(ctx context.Context, pool *pgxpool.Pool, name, id string) (AccountView, error) {
	view := AccountView{ID: id}
	// One snapshot: an account that heals meanwhile must not be shown half healed.
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(snapshot pgx.Tx) (err error) {
		tx := Of(snapshot, name)
		if view.Balance, err = showBalance(ctx, tx, id); err != nil {
			return err
		}
		if view.Hold, err = showHold(ctx, tx, id); err != nil {
			return err
		}
		view.Parked, err = showParked(ctx, tx, id)
		return err
	})
	if err != nil {
		return view, fmt.Errorf("show account: %w", err)
	}
	if view.Balance == nil && view.Hold == nil && len(view.Parked) == 0 {
		return view, ErrUnknownAccount
	}
	return view, nil
}

func showBalance(ctx context.Context, db DB, id string) (*BalanceView, error) {
	var v BalanceView
	err := db.QueryRow(ctx, db.Tables.Query("account_row"), id).
		Scan(&v.Currency, &v.Balance, &v.Version, &v.Status, &v.LastEventID, &v.LastEventAt)
	return orNil(&v, err)
}

func showHold(ctx context.Context, db DB, id string) (*Hold, error) {
	h := Hold{AccountID: id}
	err := db.QueryRow(ctx, db.Tables.Query("account_hold"), id).
		Scan(&h.Expected, &h.Received, &h.Class, &h.Waiting, &h.Beyond, &h.Since)
	return orNil(&h, err)
}

// orNil is the row that was read; nil when there was none.
func orNil[T any](row *T, err error) (*T, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return row, err
}

func showParked(ctx context.Context, db DB, id string) ([]ParkedView, error) {
	rows, err := db.Query(ctx, db.Tables.Query("account_parked"), id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ParkedView])
}

// Gaps streams the accounts of a projection that wait for a missing or corrected event, the oldest
// gap first. An error ends the iteration.
func Gaps(ctx context.Context, pool *pgxpool.Pool, name string) iter.Seq2[Hold, error] {
	return func(yield func(Hold, error) bool) {
		rows, err := pool.Query(ctx, sql.AccountsOf(name).Query("gaps"))
		if err != nil {
			yield(Hold{}, fmt.Errorf("list gaps: %w", err))
			return
		}
		var (
			h       Hold
			seconds float64
		)
		columns := []any{&h.AccountID, &h.Expected, &h.Received, &h.Class, &h.Waiting, &h.Since, &seconds}
		_, err = pgx.ForEachRow(rows, columns, func() error {
			h.Age = time.Duration(seconds * float64(time.Second))
			if !yield(h, nil) {
				return readmodel.ErrStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, readmodel.ErrStopped) {
			yield(Hold{}, fmt.Errorf("list gaps: %w", err))
		}
	}
}

// LoadOverdue returns the partitions, of those given, with a parked event that could have been
// applied for at least the given time. That happens when an account's events are in several
// partitions: the worker of another one has applied the event before it. A new claim of the
// partition applies it.
func LoadOverdue(ctx context.Context, db readmodel.Querier, name, topic string, partitions []int32, quiet time.Duration) ([]int32, error) {
	rows, err := db.Query(ctx, sql.AccountsOf(name).Query("load_overdue"), topic, partitions, quiet.Seconds())
	if err != nil {
		return nil, fmt.Errorf("look for parked events whose turn has come: %w", err)
	}
	overdue, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, fmt.Errorf("look for parked events whose turn has come: %w", err)
	}
	return overdue, nil
}
