package statement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel/accountdb"
	"projector/sql"
)

// ErrNeverRun says that no projector has ever written statements.
var ErrNeverRun = errors.New("no projector has written statements into this database")

// ErrNoEntry says that an account has no entry, and is known otherwise.
var ErrNoEntry = errors.New("the account has a balance and no entry")

// Query chooses the entries of an account that are shown. Zero values choose all.
type Query struct {
	AccountID    string
	FirstVersion int64 // of every account
	Since, Until time.Time
	From, To     *int64 // versions, both shown
}

// shows reports whether an entry is asked for.
func (q *Query) shows(l *Line) bool {
	return (q.From == nil || l.Version >= *q.From) && (q.To == nil || l.Version <= *q.To) &&
		(q.Since.IsZero() || !l.OccurredAt.Before(q.Since)) && (q.Until.IsZero() || l.OccurredAt.Before(q.Until))
}

// Line is an entry as it is shown. Nil is what is not known, or what the event does not have.
type Line struct {
	Version    int64
	EventID    string
	EventType  string
	Amount     *string // decimal, debits negative
	Currency   *string
	Running    *string // the balance after it
	OccurredAt time.Time
	Topic      *string
	Partition  *int32
	Offset     *int64
}

// Summary says what a statement that was shown is worth.
type Summary struct {
	Shown   int
	Last    int64 // the last version that was shown
	Missing int64 // versions without an entry before that
	First   Span  // of the first of them
	Other   int64 // the first version up to Last that cannot be added; 0: none
	// Skipped are the versions up to Last that were passed over on purpose.
	Skipped  []int64
	Unplaced int // shown entries without a known place in Kafka
	// Topics they may have come from; Recreated: one of them, of another id, before.
	Topics    []string
	Recreated bool
	// Opening is the version the account was opened at: its statement begins after it, with
	// the opening's balance. nil: it begins with its first event.
	Opening *int64
	// Balance is the version of the account's balance; nil: it has none. Behind: the
	// statement's last version, Through, is below it. Differs: at the balance's version the
	// amounts are not the same.
	Balance *int64
	Through int64
	Behind  bool
	Differs bool
}

// Account calls fn with the entries of an account that are asked for, in the order of
// their versions, and sums up. It returns readmodel.ErrUnknownAccount, ErrNeverRun or
// ErrNoEntry when the account has none at all.
func Account(ctx context.Context, pool *pgxpool.Pool, q Query, fn func(*Line) error) (Summary, error) {
	r := &reading{query: q}
	// One snapshot: what is added up must be what it is held against.
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := r.begin(ctx, tx); err != nil {
			return err
		}
		return r.entries(ctx, tx, fn)
	})
	if err != nil {
		return r.sum, fmt.Errorf("show statement: %w", err)
	}
	return r.sum, nil
}

// reading is a statement while it is read.
type reading struct {
	query   Query
	sum     Summary
	skipped []int64
	running *Running
	balance struct{ amount, currency string }
	last    *int64 // version that has an entry; nil: there is none
	held    bool   // against the balance
}

// begin reads what else there is than the entries.
func (r *reading) begin(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, sql.Query("statement_topics"), Name)
	if err != nil {
		return err
	}
	var (
		topic     string
		recreated bool
	)
	if _, err = pgx.ForEachRow(rows, []any{&topic, &recreated}, func() error {
		r.sum.Topics, r.sum.Recreated = append(r.sum.Topics, topic), r.sum.Recreated || recreated
		return nil
	}); err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, sql.Query("statement_skipped"), r.query.AccountID); err != nil {
		return err
	}
	if r.skipped, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, sql.Query("statement_last"), r.query.AccountID).Scan(&r.last); err != nil {
		return err
	}
	return r.beginning(ctx, tx)
}

// beginning reads what the statement begins with, and what it is held against.
func (r *reading) beginning(ctx context.Context, tx pgx.Tx) error {
	var opening struct{ amount, currency string }
	err := tx.QueryRow(ctx, sql.Query("statement_balance"), r.query.AccountID).
		Scan(&r.sum.Balance, &r.balance.amount, &r.balance.currency, &r.sum.Opening, &opening.amount, &opening.currency)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if r.sum.Opening == nil {
		r.running = NewRunning(r.query.FirstVersion, r.skipped)
		return nil
	}
	before, _ := slices.BinarySearch(r.skipped, *r.sum.Opening+1)
	r.skipped = r.skipped[before:]
	r.running = NewRunning(*r.sum.Opening+1, r.skipped)
	r.running.Open(opening.amount, opening.currency)
	return nil
}

// entries reads all entries up to the last that is asked for.
func (r *reading) entries(ctx context.Context, tx pgx.Tx, fn func(*Line) error) error {
	if r.last == nil {
		if err := r.nothing(); err != nil {
			return err
		}
	}
	rows, err := tx.Query(ctx, sql.Query("statement_account"), r.query.AccountID, r.query.To, r.sum.Opening)
	if err != nil {
		return err
	}
	var l Line
	_, err = pgx.ForEachRow(rows, []any{
		&l.Version, &l.EventID, &l.EventType, &l.Amount, &l.Currency, &l.OccurredAt, &l.Partition, &l.Offset,
	}, func() error { return r.take(l, fn) })
	if err != nil {
		return err
	}
	r.running.PassSkipped()
	r.hold()
	r.sum.Through = r.running.Through()
	whole := r.query.To == nil || r.last == nil || *r.query.To >= *r.last
	r.sum.Behind = r.sum.Balance != nil && r.sum.Through < *r.sum.Balance && whole
	behind, _ := slices.BinarySearch(r.skipped, r.sum.Last+1)
	r.sum.Skipped = r.skipped[:behind]
	return nil
}

// nothing says why an account has no entry; nil: it may have none.
func (r *reading) nothing() error {
	switch {
	case len(r.sum.Topics) == 0:
		return ErrNeverRun
	case r.sum.Balance == nil:
		return accountdb.ErrUnknownAccount
	case r.sum.Opening != nil:
		return nil
	default:
		return ErrNoEntry
	}
}

// take adds an entry up and shows it, if it is asked for.
func (r *reading) take(l Line, fn func(*Line) error) error {
	if b := r.sum.Balance; b != nil && l.Version > *b {
		r.running.Reach(min(l.Version, *b+1))
		r.hold()
	}
	currency := ""
	if l.Currency != nil {
		currency = *l.Currency
	}
	r.running.Add(l.Version, l.Amount, currency)
	if !r.query.shows(&l) {
		return nil
	}
	if text, known := r.running.Balance(); known {
		l.Running = &text
	}
	if l.Offset == nil {
		r.sum.Unplaced++
	}
	if l.Offset != nil && len(r.sum.Topics) == 1 {
		l.Topic = &r.sum.Topics[0]
	}
	r.sum.Shown++
	r.sum.Last, r.sum.Missing, r.sum.First, r.sum.Other = l.Version, r.running.Missing, r.running.First, r.running.Other
	return fn(&l)
}

// hold holds the sum against the balance when it is that of the same version.
func (r *reading) hold() {
	if b := r.sum.Balance; b == nil || r.held || r.running.Through() != *b {
		return
	}
	r.held = true
	if _, known := r.running.Balance(); known {
		r.sum.Differs = !r.running.Is(r.balance.amount, r.balance.currency)
	}
}
