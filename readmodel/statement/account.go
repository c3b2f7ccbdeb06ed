package statement

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/sql"
)

// ErrNeverRun means that the projection account_statement never ran with this database.
var ErrNeverRun = errors.New("no projector has written statements into this database")

// ErrNoEntry means that an account exists but has no entry.
var ErrNoEntry = errors.New("the account has a balance and no entry")

// Query selects entries of the account AccountID. A zero Since, Until, From or To does not filter.
// FirstVersion does not filter either.
type Query struct {
	AccountID    string
	FirstVersion int64 // first version of every account
	Since, Until time.Time
	From, To     *int64 // first and last version to show
}

func (q *Query) shows(l *Line) bool {
	return (q.From == nil || l.Version >= *q.From) && (q.To == nil || l.Version <= *q.To) &&
		(q.Since.IsZero() || !l.OccurredAt.Before(q.Since)) && (q.Until.IsZero() || l.OccurredAt.Before(q.Until))
}

// Line is an entry in the form in which it is shown. A nil field is unknown, or the event does not
// have this value.
type Line struct {
	Version    int64
	EventID    string
	EventType  string
	Amount     *string // decimal, debits negative
	Currency   *string
	Running    *string // the balance after the entry
	OccurredAt time.Time
	Topic      *string
	Partition  *int32
	Offset     *int64
}

// Summary says how complete a statement is.
type Summary struct {
	Shown   int
	Last    int64 // the last shown version
	Missing int64 // number of versions before Last that have no entry and were not skipped
	First   Span  // the first range of these versions
	Other   int64 // the first version up to Last that cannot be added; 0 if there is none
	// Skipped holds the versions up to Last that an operator skipped.
	Skipped  []int64
	Unplaced int // number of shown entries with an unknown position in Kafka
	// Topics lists the topics from which the entries may come. Recreated is true if one of these
	// topics was deleted and created again.
	Topics    []string
	Recreated bool
	// Opening is the version at which the account was opened from a ledger. The statement starts
	// after this version, with the opening's balance. It is nil if there was no opening.
	Opening *int64
	// Balance is the version of the account's balance. It is nil if there is no balance. Behind is
	// true if Through, the statement's last version, is lower than Balance, and this is not caused
	// by the field To of the query. Differs is true if the statement's sum at the version Balance
	// is not the account's balance.
	Balance *int64
	Through int64
	Behind  bool
	Differs bool
}

// Account calls fn with the selected entries of an account, sorted by version. It returns a
// summary. If the account has no entry, it returns accountdb.ErrUnknownAccount, ErrNeverRun or
// ErrNoEntry, unless the account was opened from a ledger.
func Account(ctx context.Context, pool *pgxpool.Pool, q Query, fn func(*Line) error) (Summary, error) {
	r := &reading{query: q}
	// All queries use one snapshot, so that the sum and the balance are of the same moment.
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

// reading is the state while a statement is read.
type reading struct {
	query    Query
	sum      Summary
	skipped  []int64
	running  *Running
	balance  struct{ amount, currency string }
	last     *int64 // last version with an entry; nil if there is none
	compared bool   // the sum was compared with the balance
}

// begin reads all data of the statement except the entries.
func (r *reading) begin(ctx context.Context, tx pgx.Tx) error {
	topics, err := readmodel.LoadTopics(ctx, tx, Name)
	if err != nil {
		return err
	}
	for _, t := range topics {
		r.sum.Topics, r.sum.Recreated = append(r.sum.Topics, t.Name), r.sum.Recreated || t.Recreated
	}
	rows, _ := tx.Query(ctx, sql.Query("statement_skipped"), r.query.AccountID)
	if r.skipped, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, sql.Query("statement_last"), r.query.AccountID).Scan(&r.last); err != nil {
		return err
	}
	return r.beginning(ctx, tx)
}

// beginning reads the opening, and the balance with which the sum is compared.
func (r *reading) beginning(ctx context.Context, tx pgx.Tx) error {
	var opening struct{ amount, currency string }
	err := tx.QueryRow(ctx, sql.Query("statement_balance"), r.query.AccountID).
		Scan(&r.sum.Balance, &r.balance.amount, &r.balance.currency, &r.sum.Opening, &opening.amount, &opening.currency)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if r.sum.Opening == nil {
		r.running = NewRunning(r.query.FirstVersion-1, r.skipped)
		return nil
	}
	r.skipped = r.skipped[countThrough(r.skipped, *r.sum.Opening):]
	r.running = NewRunning(*r.sum.Opening, r.skipped)
	r.running.Open(opening.amount, opening.currency)
	return nil
}

// entries reads all entries up to the last version of the query, because the sum needs them.
func (r *reading) entries(ctx context.Context, tx pgx.Tx, fn func(*Line) error) error {
	if r.last == nil {
		if err := r.noEntryError(); err != nil {
			return err
		}
	}
	rows, _ := tx.Query(ctx, sql.Query("statement_account"), r.query.AccountID, r.query.To, r.sum.Opening)
	var l Line
	_, err := pgx.ForEachRow(rows, []any{
		&l.Version, &l.EventID, &l.EventType, &l.Amount, &l.Currency, &l.OccurredAt, &l.Partition, &l.Offset,
	}, func() error { return r.add(l, fn) })
	if err != nil {
		return err
	}
	r.running.PassSkipped()
	r.compareWithBalance()
	r.sum.Through = r.running.Through()
	whole := r.query.To == nil || r.last == nil || *r.query.To >= *r.last
	r.sum.Behind = r.sum.Balance != nil && r.sum.Through < *r.sum.Balance && whole
	r.sum.Skipped = r.skipped[:countThrough(r.skipped, r.sum.Last)]
	return nil
}

// countThrough returns how many of the sorted versions are not above the given one.
func countThrough(versions []int64, version int64) int {
	return sort.Search(len(versions), func(i int) bool { return versions[i] > version })
}

// noEntryError returns why an account has no entry. It returns nil if the account was opened from a
// ledger and has no later event.
func (r *reading) noEntryError() error {
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

// add adds an entry to the sum. It calls fn if the query selects the entry.
func (r *reading) add(l Line, fn func(*Line) error) error {
	if b := r.sum.Balance; b != nil && l.Version > *b {
		r.running.Reach(*b)
		r.compareWithBalance()
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

// compareWithBalance compares the sum with the balance if both have the same version.
func (r *reading) compareWithBalance() {
	if b := r.sum.Balance; b == nil || r.compared || r.running.Through() != *b {
		return
	}
	r.compared = true
	if _, known := r.running.Balance(); known {
		r.sum.Differs = !r.running.Is(r.balance.amount, r.balance.currency)
	}
}
