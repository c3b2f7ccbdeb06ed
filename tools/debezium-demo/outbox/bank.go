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

// currencies of the bank with their decimals. The n-th account has the n-th of them,
// and round again.
var currencies = []struct {
	code     string
	decimals int
}{{"EUR", 2}, {"USD", 2}, {"JPY", 0}, {"BHD", 3}}

// MinAccounts are needed before a bank can Work: one in each currency.
const MinAccounts = 4

// Bank is a simulated bank. It writes its books and a row of the outbox in one transaction.
// Debezium makes events from those rows, and what the projector makes of the events must
// equal the books: no other generator or oracle could show that. Safe for concurrent use.
//
// Money is moved by many clients at once. A transaction updates the rows of its
// accounts in the order of their ids, which is what keeps clients from waiting for
// each other in a circle, and what makes the versions of an account appear in the
// log in their order.
type Bank struct {
	pool    *pgxpool.Pool
	numbers atomic.Int64 // accounts numbered so far
}

// Account is an account as the books have it. Balance has the currency's number of
// decimals; Status is open or closed.
type Account struct {
	ID, Currency, Balance string
	Version               int64
	Status                string
}

// NewBank makes the bank's tables: its books, and the outbox by the given SQL.
func NewBank(ctx context.Context, pool *pgxpool.Pool, outboxSQL string) (*Bank, error) {
	for _, sql := range []string{ledgerSQL, outboxSQL} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("make the bank's tables: %w", err)
		}
	}
	return &Bank{pool: pool}, nil
}

// errRefused is a booking on an account that is closed, or not open yet.
var errRefused = errors.New("the account is not open")

// Open opens accounts, with some money in each of them.
func (b *Bank) Open(ctx context.Context, n int) error {
	for range n {
		if err := b.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Work needs MinAccounts. It has clients move money at about so many transactions a second, until ctx ends.
func (b *Bank) Work(ctx context.Context, clients, rate int) error {
	failures := make([]error, clients)
	var working sync.WaitGroup
	for i := range clients {
		working.Go(func() { failures[i] = b.client(ctx, time.Second*time.Duration(clients)/time.Duration(rate)) })
	}
	working.Wait()
	return errors.Join(failures...)
}

// client does one thing after the other. What it has begun when ctx ends it finishes.
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

// something is mostly a transfer.
func (b *Bank) something(ctx context.Context) error {
	switch rand.IntN(100) { //nolint:gosec // G404: nothing here is secret
	case 0:
		return b.open(ctx)
	case 1:
		return b.transact(ctx, func(tx pgx.Tx) error { return entry(ctx, tx, closeSQL, accountID(b.anyone())) })
	default:
		return b.transfer(ctx)
	}
}

// open opens an account and pays something in.
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

// transfer moves money between two accounts of one currency, which may be the same.
func (b *Bank) transfer(ctx context.Context) error {
	from := b.anyone()
	to := b.anyoneLike(from)
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

// entry makes one entry in the books and its row in the outbox.
func entry(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		return errRefused
	}
	return err
}

// anyone is the number of some account.
func (b *Bank) anyone() int64 {
	return 1 + rand.Int64N(b.numbers.Load()) //nolint:gosec // G404: nothing here is secret
}

// anyoneLike is the number of some account in the same currency.
func (b *Bank) anyoneLike(number int64) int64 {
	n := int64(len(currencies))
	first := number % n
	if first == 0 {
		first = n
	}
	return first + n*rand.Int64N((b.numbers.Load()-first)/n+1) //nolint:gosec // G404: nothing here is secret
}

func accountID(number int64) string { return fmt.Sprintf("acc-%08d", number) }

// Accounts are all accounts by their ids, as the books have them.
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

// Told is how many events were written into the outbox.
func (b *Bank) Told(ctx context.Context) (n int64, err error) {
	if err := b.pool.QueryRow(ctx, "SELECT count(*) FROM outbox").Scan(&n); err != nil {
		return 0, fmt.Errorf("count the outbox: %w", err)
	}
	return n, nil
}
