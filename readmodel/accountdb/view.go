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

// ErrUnknownAccount means that the read model does not have the account.
var ErrUnknownAccount = errors.New("no event of the account has been applied or parked")

// AccountView is an account as readers see it, with its parked events.
type AccountView struct {
	ID      string
	Balance *BalanceView // nil if its first version is missing
	Hold    *Hold        // nil if the account waits for no version
	Parked  []ParkedView // sorted by version
}

// BalanceView is a row of account_balance.
type BalanceView struct {
	Currency    string // empty before the first event that has one
	Balance     string // decimal, with the currency's number of decimals
	Version     int64
	Status      string
	LastEventID string     // empty if unknown
	LastEventAt *time.Time // nil if unknown
}

// Hold describes the version that an account waits for.
type Hold struct {
	AccountID string
	Expected  int64 // the missing version
	Received  int64 // the lowest known version that is not below Expected
	Class     event.Class
	Waiting   int64 // number of waiting events
	Beyond    int64 // number of waiting events beyond the park limit, which are only in the DLQ
	Since     time.Time
	Age       time.Duration
}

// ParkedView is a parked event without its payload. It can be encoded as JSON.
type ParkedView struct {
	Version   int64       `json:"version"`
	Class     event.Class `json:"class"`
	EventID   string      `json:"event_id"`
	Topic     string      `json:"topic"`
	Partition int32       `json:"partition"`
	Offset    int64       `json:"offset"`
}

// ShowAccount reads an account of a projection with its waiting events, or returns
// ErrUnknownAccount. For an account of a custom projection, the BalanceView has no amount, currency
// and status.
func ShowAccount(ctx context.Context, pool *pgxpool.Pool, name, id string) (AccountView, error) {
	view := AccountView{ID: id}
	// All queries read the same snapshot, because the account may change between two queries.
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

func orNil[T any](row *T, err error) (*T, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return row, err
}

func showParked(ctx context.Context, db DB, id string) ([]ParkedView, error) {
	rows, _ := db.Query(ctx, db.Tables.Query("account_parked"), id)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ParkedView])
}

// Gaps streams the accounts of a projection that wait for a missing or corrected event. The oldest
// gap comes first. An error ends the iteration.
func Gaps(ctx context.Context, pool *pgxpool.Pool, name string) iter.Seq2[Hold, error] {
	return readmodel.Stream(func(fn func(Hold) error) error {
		var (
			h       Hold
			seconds float64
		)
		into := []any{&h.AccountID, &h.Expected, &h.Received, &h.Class, &h.Waiting, &h.Since, &seconds}
		return readmodel.Each(ctx, pool, "list gaps", sql.AccountsOf(name).Query("gaps"), nil, into, func() error {
			h.Age = time.Duration(seconds * float64(time.Second))
			return fn(h)
		})
	})
}

// LoadOverdue returns the given partitions that have an overdue parked event. A parked event is
// overdue if it can be applied, and if this has been so for at least the given time. For example,
// an account's events are in several partitions, and another partition has applied the event before
// the parked one. A new claim of the partition applies the parked event.
func LoadOverdue(ctx context.Context, db readmodel.Querier, name, topic string, partitions []int32, quiet time.Duration) ([]int32, error) {
	return readmodel.Collect(ctx, db, pgx.RowTo[int32], "look for parked events whose turn has come",
		sql.AccountsOf(name).Query("load_overdue"), topic, partitions, quiet.Seconds())
}
