package fromledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/ledger"
)

// Source is where a ledger is read from.
type Source interface {
	// Name is what people know it by: the file, or the server and its database.
	Name() string
	// SHA256 is that of the file, once it was read; empty: it is none.
	SHA256() string
	// Each hands over every entry, in any order. A *ledger.FieldError of fn names a place then.
	Each(ctx context.Context, layout ledger.Layout, fn func(ledger.Entry) error) error
	// Named makes errors about entries name the source and its places.
	Named(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error]
	Close()
}

// WarnLedger prints that the ledger's PostgreSQL is not asked for verified TLS.
func (f *LedgerFlags) WarnLedger(stderr io.Writer) {
	if f.LedgerURL != "" && connect.Unverified(f.LedgerURL) {
		_, _ = fmt.Fprintf(stderr, "warning: --ledger-url (LEDGER_URL): %s\n", connect.UnverifiedText)
	}
}

// Open opens the ledger that the flags name.
func (f *LedgerFlags) Open(ctx context.Context) (Source, error) {
	if f.LedgerURL != "" {
		return f.connect(ctx)
	}
	if f.Ledger.Stdin() {
		return newFile("standard input", io.NopCloser(os.Stdin)), nil
	}
	opened, err := f.Ledger.Open()
	if err != nil {
		return nil, exit.Usagef("--ledger (LEDGER): %w", err)
	}
	return newFile(f.Ledger.String(), opened), nil
}

// file is a ledger in CSV.
type file struct {
	name string
	io.ReadCloser
	sum hash.Hash
}

func newFile(name string, opened io.ReadCloser) *file { return &file{name, opened, sha256.New()} }

// Name implements Source.
func (l *file) Name() string { return filepath.Base(l.name) }

// SHA256 implements Source.
func (l *file) SHA256() string { return hex.EncodeToString(l.sum.Sum(nil)) }

// Each implements Source.
func (l *file) Each(ctx context.Context, layout ledger.Layout, fn func(ledger.Entry) error) error {
	for entry, err := range ledger.ReadCSV(io.TeeReader(l.ReadCloser, l.sum), layout) {
		if err != nil {
			return l.wrong(err)
		}
		if err := fn(entry); err != nil {
			return placed(err, "line", entry.Place, l.wrong)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (l *file) wrong(err error) error {
	return exit.Usagef("--ledger (LEDGER): %s: %w", l.name, err)
}

// Named implements Source.
func (l *file) Named(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error] {
	return naming(entries, func(d *ledger.DuplicateError) error {
		return l.wrong(fmt.Errorf("account %q is there twice, in lines %d and %d", d.AccountID, d.First, d.Second))
	})
}

// Close implements Source.
func (l *file) Close() { _ = l.ReadCloser.Close() } // it was only read

// placed names the place of an entry of which a field is wrong.
func placed(err error, unit string, place int64, wrong func(error) error) error {
	var field *ledger.FieldError
	if errors.As(err, &field) {
		return wrong(fmt.Errorf("%s %d: %w", unit, place, err))
	}
	return err
}

// naming puts what wrong makes of it in the place of a duplicate's error.
func naming(entries iter.Seq2[ledger.Entry, error], wrong func(*ledger.DuplicateError) error) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for entry, err := range entries {
			var duplicate *ledger.DuplicateError
			if errors.As(err, &duplicate) {
				err = wrong(duplicate)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// query is a ledger in a PostgreSQL of its own.
type query struct {
	conn *pgx.Conn
	text string
}

func (f *LedgerFlags) connect(ctx context.Context) (*query, error) {
	cfg, err := pgx.ParseConfig(f.LedgerURL)
	if err != nil {
		return nil, exit.Usagef("--ledger-url (LEDGER_URL): %s", errclass.Safe(err))
	}
	if f.LedgerPasswordFile != "" {
		if cfg.Password, err = connect.FromFile(passwordFileFlag, f.LedgerPasswordFile); err != nil {
			return nil, exit.WrongUsage(err)
		}
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 5 * time.Second
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("reach the ledger: %w", err)
	}
	return &query{conn, f.LedgerQuery}, nil
}

// Name implements Source.
func (l *query) Name() string {
	cfg := l.conn.Config()
	return fmt.Sprintf("%s:%d/%s", cfg.Host, cfg.Port, cfg.Database)
}

// SHA256 implements Source.
func (*query) SHA256() string { return "" }

// Each implements Source. It streams the answer, which is one snapshot of the ledger, as text: whatever the
// types of its columns, no number goes through a float.
func (l *query) Each(ctx context.Context, layout ledger.Layout, fn func(ledger.Entry) error) error {
	return pgx.BeginTxFunc(ctx, l.conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, l.text, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
		if err != nil {
			return l.failed(err)
		}
		defer rows.Close()
		texts, into, err := l.columns(rows, layout)
		if err != nil {
			return err
		}
		row, own := int64(0), error(nil)
		_, err = pgx.ForEachRow(rows, into, func() error {
			row++
			var entry ledger.Entry
			if entry, own = ledger.ParseNullable(*texts); own == nil {
				entry.Place = row
				own = fn(entry)
			}
			own = placed(own, "row", row, l.wrong)
			return own
		})
		if own != nil || err == nil {
			return own
		}
		return l.failed(err)
	})
}

// columns says where each column of the answer goes, and where the ledger's are found.
func (l *query) columns(rows pgx.Rows, layout ledger.Layout) (*ledger.Texts, []any, error) {
	fields := rows.FieldDescriptions()
	if len(fields) == 0 { // the query failed, or answers nothing at all
		rows.Close()
		if err := rows.Err(); err != nil {
			return nil, nil, l.failed(err)
		}
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	columns, err := layout.FindColumns(names)
	if err != nil {
		return nil, nil, l.wrong(err)
	}
	texts, into := new(ledger.Texts), make([]any, len(fields))
	for i, at := range columns {
		if at >= 0 {
			into[at] = &texts[i]
		}
	}
	return texts, into, nil
}

func (l *query) wrong(err error) error {
	return exit.Usagef("--ledger-query (LEDGER_QUERY): %w", err)
}

// failed tells a query that cannot work from a server that does not.
func (l *query) failed(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && strings.HasPrefix(server.Code, "42") {
		return exit.Usagef("--ledger-query (LEDGER_QUERY): %s", errclass.Safe(err))
	}
	return fmt.Errorf("query the ledger: %w", err)
}

// Named implements Source.
func (l *query) Named(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error] {
	return naming(entries, func(d *ledger.DuplicateError) error {
		return l.wrong(fmt.Errorf("account %q is there twice, in rows %d and %d", d.AccountID, d.First, d.Second))
	})
}

// Close implements Source.
func (l *query) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // it was only read from
}
