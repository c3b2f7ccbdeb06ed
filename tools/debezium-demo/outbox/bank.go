package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed ledger.sql
var ledgerSQL string

//go:embed open.sql
var openSQL string

//go:embed book.sql
var bookSQL string

//go:embed close.sql
var closeSQL string

//go:embed accounts.sql
var accountsSQL string

// currencies are the bank's currencies with their decimals. The number of an account, modulo the
// number of currencies, gives its currency.
var currencies = []struct {
	code     string
	decimals int
}{{"EUR", 2}, {"USD", 2}, {"JPY", 0}, {"BHD", 3}}

// MinAccounts is how many accounts a bank needs before Work. There is then an account in each
// currency.
const MinAccounts = 4

// Bank is a simulated bank. It writes its books and a row of the outbox in one transaction.
// Debezium publishes the outbox rows as events, and the projector builds the read model from these
// events. The read model must equal the books. A Bank is safe for concurrent use.
//
// Many clients move money at the same time. A transaction updates the rows of its accounts in the
// order of their ids, which prevents deadlocks. Because of the row locks, the versions of an
// account are also in order in PostgreSQL's write-ahead log.
type Bank struct {
	pool    *pgxpool.Pool
	numbers atomic.Int64 // number of the last account
}

// Account is an account in the books. Balance has the decimals of its currency. Status is open or
// closed.
type Account struct {
	ID, Currency, Balance string
	Version               int64
	Status                string
}

// NewBank creates the bank's tables. These are its books and the outbox with the given SQL.
func NewBank(ctx context.Context, pool *pgxpool.Pool, outboxSQL string) (*Bank, error) {
	for _, sql := range []string{ledgerSQL, outboxSQL} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("make the bank's tables: %w", err)
		}
	}
	return &Bank{pool: pool}, nil
}

// errRefused means that the account is closed or not open yet.
var errRefused = errors.New("the account is not open")

// Open opens n accounts, each with some money.
func (b *Bank) Open(ctx context.Context, n int) error {
	for range n {
		if err := b.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Work lets the clients move money until ctx ends. Together they make about rate transactions each
// second. The bank needs at least MinAccounts accounts.
func (b *Bank) Work(ctx context.Context, clients, rate int) error {
	failures := make([]error, clients)
	var working sync.WaitGroup
	for i := range clients {
		working.Go(func() { failures[i] = b.client(ctx, time.Second*time.Duration(clients)/time.Duration(rate)) })
	}
	working.Wait()
	return errors.Join(failures...)
}

// client does one operation after another. When ctx ends, client finishes the current operation.
func (b *Bank) client(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := b.something(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, errRefused) {
			return err
		}
	}
}

// something does a random operation. Most operations are transfers.
func (b *Bank) something(ctx context.Context) error {
	switch rand.IntN(100) { //nolint:gosec // G404: nothing here is secret
	case 0:
		return b.open(ctx)
	case 1:
		return b.transact(ctx, func(tx pgx.Tx) error { return entry(ctx, tx, closeSQL, accountID(b.randomAccount())) })
	default:
		return b.transfer(ctx)
	}
}

// open opens an account with a first payment.
func (b *Bank) open(ctx context.Context) error {
	number := b.numbers.Add(1)
	id, currency := accountID(number), currencies[number%int64(len(currencies))]
	return b.transact(ctx, func(tx pgx.Tx) error {
		if err := entry(ctx, tx, openSQL, id, currency.code, currency.decimals); err != nil {
			return err
		}
		return entry(ctx, tx, bookSQL, id, 1_000_000, nil)
	})
}

// transfer moves money between two accounts of one currency, which may be the same account.
func (b *Bank) transfer(ctx context.Context) error {
	from := b.randomAccount()
	to := b.randomAccountLike(from)
	amount := 1 + rand.Int64N(100_000)                        //nolint:gosec // G404: nothing here is secret
	reference := fmt.Sprintf("transfer-%016x", rand.Uint64()) //nolint:gosec // G404: nothing here is secret
	if from > to {
		from, to, amount = to, from, -amount
	}
	return b.transact(ctx, func(tx pgx.Tx) error {
		if err := entry(ctx, tx, bookSQL, accountID(from), -amount, reference); err != nil {
			return err
		}
		return entry(ctx, tx, bookSQL, accountID(to), amount, reference)
	})
}

func (b *Bank) transact(ctx context.Context, do func(pgx.Tx) error) error {
	if err := pgx.BeginFunc(ctx, b.pool, do); err != nil {
		return fmt.Errorf("the bank's transaction: %w", err)
	}
	return nil
}

// entry adds an entry to the books and the row of its event to the outbox.
func entry(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		return errRefused
	}
	return err
}

// randomAccount returns the number of a random account, which may be closed.
func (b *Bank) randomAccount() int64 {
	return 1 + rand.Int64N(b.numbers.Load()) //nolint:gosec // G404: nothing here is secret
}

// randomAccountLike returns the number of a random account in the currency of the given account.
func (b *Bank) randomAccountLike(number int64) int64 {
	n := int64(len(currencies))
	first := number % n
	if first == 0 {
		first = n
	}
	return first + n*rand.Int64N((b.numbers.Load()-first)/n+1) //nolint:gosec // G404: nothing here is secret
}

func accountID(number int64) string { return fmt.Sprintf("acc-%08d", number) }

// Accounts returns all accounts of the books. The key is the account id.
func (b *Bank) Accounts(ctx context.Context) (map[string]Account, error) {
	rows, err := b.pool.Query(ctx, accountsSQL)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Account])
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	accounts := make(map[string]Account, len(list))
	for _, a := range list {
		accounts[a.ID] = a
	}
	return accounts, nil
}

// EventCount returns how many events are in the outbox.
func (b *Bank) EventCount(ctx context.Context) (n int64, err error) {
	if err := b.pool.QueryRow(ctx, "SELECT count(*) FROM outbox").Scan(&n); err != nil {
		return 0, fmt.Errorf("count the outbox: %w", err)
	}
	return n, nil
}
