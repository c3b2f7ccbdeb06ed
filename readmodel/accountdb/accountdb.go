package accountdb

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accounts"
	"projector/readmodel/citus"
	"projector/sql"
)

// DB reads the accounts of one projection.
type DB struct {
	readmodel.Querier
	Tables *sql.Accounts
}

// Of returns a reader of a projection's accounts.
func Of(db readmodel.Querier, name string) DB {
	return DB{db, sql.AccountsOf(name)}
}

func (a DB) inShards(ctx context.Context, fn func(readmodel.Querier, citus.Shards) error) error {
	if !a.Tables.Balances() { // Citus distributes only the balances
		return fn(a.Querier, nil)
	}
	switch db := a.Querier.(type) {
	case *readmodel.Tx:
		return fn(db, citus.ShardsOn(db.Conn))
	case *pgxpool.Pool:
		return db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return fn(conn, citus.ShardsOn(conn.Conn())) })
	}
	return fn(a.Querier, nil)
}

// Tx is a transaction that writes the accounts of one projection.
type Tx struct {
	*readmodel.Tx
	Tables *sql.Accounts
	Copies bool // many new accounts are written by COPY
}

// DB returns a reader within the transaction.
func (tx *Tx) DB() DB { return DB{tx.Tx, tx.Tables} }

func (tx *Tx) shards() citus.Shards {
	if !tx.Tables.Balances() {
		return nil
	}
	return citus.ShardsOn(tx.Conn)
}

// Locked returns how many accounts one statement may lock. If Citus distributes the balances, it is
// 1, because a statement can only lock rows of one shard. Otherwise it is the given number.
func (tx *Tx) Locked(most int) int {
	if citus.On(tx.Conn) && tx.Tables.Balances() {
		return 1
	}
	return most
}

// copyAccounts writes accounts that have no row.
func copyAccounts(ctx context.Context, tx *Tx, fresh []accounts.Row) error {
	money := tx.Tables.Balances()
	columns := 5
	if money {
		columns = 7
	}
	rows := readmodel.NewCopyRows(columns, len(fresh), 88)
	for i := range fresh {
		s := &fresh[i].Account
		rows.Begin()
		if !money {
			rows.Text(tx.Tables.Projection)
		}
		rows.Text(fresh[i].AccountID)
		if money {
			rows.TextOrNull(s.Currency.Code())
			rows.Money(s.Balance, s.Currency.Digits())
			rows.Text(Status(s.Closed))
		}
		rows.Int8(s.Version)
		rows.TextOrNull(s.LastEventID)
		if s.LastEventAt == projection.NoTime {
			rows.Null()
		} else {
			rows.Time(s.LastEventAt)
		}
	}
	return tx.Copy(ctx, tx.Tables.Query("copy_balance"), rows)
}

// Status returns the value of the column status.
func Status(closed bool) string {
	if closed {
		return "closed"
	}
	return "open"
}
