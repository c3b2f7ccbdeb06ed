package readmodel

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel/accounts"
	"projector/readmodel/citus"
	"projector/sql"
)

// accountDB reads the accounts of one projection.
type accountDB struct {
	Querier
	tables *sql.Accounts
}

// accountsIn reads the accounts of a projection from db.
func accountsIn(db Querier, name string) accountDB {
	return accountDB{db, sql.AccountsOf(name)}
}

// inShards calls fn with what reads from a database, and with the shards of the accounts there.
func (a accountDB) inShards(ctx context.Context, fn func(Querier, citus.Shards) error) error {
	if !a.tables.Balances() { // Citus distributes no others
		return fn(a.Querier, nil)
	}
	switch db := a.Querier.(type) {
	case *Tx:
		return fn(db, citus.ShardsOn(db.Conn()))
	case *pgxpool.Pool:
		return db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return fn(conn, citus.ShardsOn(conn.Conn())) })
	}
	return fn(a.Querier, nil)
}

// accountTx is a transaction that writes the accounts of one projection.
type accountTx struct {
	*Tx
	tables *sql.Accounts
	copies bool // new balances in great numbers are written by COPY
}

// db reads the accounts within the transaction.
func (tx *accountTx) db() accountDB { return accountDB{tx.Tx, tx.tables} }

// Shards are where the accounts are that the transaction writes.
func (tx *accountTx) shards() citus.Shards {
	if !tx.tables.Balances() {
		return nil
	}
	return citus.ShardsOn(tx.Conn())
}

// locked is how many accounts one statement may lock: Citus locks rows in one shard only, which
// is sure with a single account.
func (tx *accountTx) locked(most int) int {
	if citus.On(tx.Conn()) && tx.tables.Balances() {
		return 1
	}
	return most
}

// copyBalances writes accounts that have no row.
func copyBalances(ctx context.Context, tx *Tx, fresh []accounts.Row) error {
	rows := NewCopyRows(7, len(fresh), 88)
	for i := range fresh {
		s := &fresh[i].Account
		rows.Begin()
		rows.Text(fresh[i].AccountID)
		rows.TextOrNull(s.Currency.Code())
		rows.Money(s.Balance, s.Currency.Digits())
		rows.Int8(s.Version)
		rows.Text(status(s.Closed))
		rows.TextOrNull(s.LastEventID)
		if s.LastEventAt == projection.NoTime {
			rows.Null()
		} else {
			rows.Time(s.LastEventAt)
		}
	}
	return tx.Copy(ctx, sql.Query("copy_balance"), rows)
}

func status(closed bool) string {
	if closed {
		return "closed"
	}
	return "open"
}
