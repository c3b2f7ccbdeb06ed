package accountdb

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accounts"
	"projector/readmodel/citus"
	"projector/sql"
)

// TestAccountsAreWrittenShardByShard writes accounts as if Citus stored them in three shards. It
// first writes them as new accounts and then updates all of them twice. At the end it reads the
// accounts.
func TestAccountsAreWrittenShardByShard(t *testing.T) {
	pool, err := readmodel.OpenPool(t.Context(), devtest.Database(t), readmodel.WithConns(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	err = pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		conn.Conn().PgConn().CustomData()[citus.OnCitus] = citus.Shards{math.MinInt32, -1000, 1 << 29}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	euro, _ := event.CurrencyByCode("EUR")
	rows := make([]accounts.Row, 2*firstSlice)
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = fmt.Sprintf("acc-%08d", i)
		rows[i] = accounts.Row{AccountID: ids[i], Account: projection.Account{Currency: euro, LastEventAt: projection.NoTime}}
	}
	for version := int64(1); version <= 3; version++ {
		for i := range rows {
			rows[i].Stored, rows[i].Exists = rows[i].Account.Version, version > 1
			rows[i].Account.Version, rows[i].Account.Balance = version, version*int64(i)
		}
		err := readmodel.TransactQueued(t.Context(), pool, func(tx *readmodel.Tx) error {
			return WriteChanges(t.Context(), &Tx{Tx: tx, Tables: sql.AccountsOf(readmodel.BalanceName)}, &accounts.Changes{Rows: rows})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := map[string]projection.Account{}
	err = readmodel.Transact(t.Context(), pool, func(tx *readmodel.Tx) error {
		return Store{DB: Of(tx, readmodel.BalanceName), FirstVersion: 1}.Accounts(t.Context(), ids, func(a *projection.StoredAccount) {
			read[strings.Clone(a.ID)] = a.Account
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if got := read[ids[i]]; got.Version != 3 || got.Balance != 3*int64(i) {
			t.Fatalf("%s is at version %d with %d, want 3 with %d", ids[i], got.Version, got.Balance, 3*i)
		}
	}
}
