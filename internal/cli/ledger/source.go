package ledger

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
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/ledger"
)

// Source is where a ledger is read from.
type Source interface {
	// Name is what people know it by: the file, or the server and its database.
	Name() string
	// SHA256 is that of the file after it was read; empty for a query.
	SHA256() string
	// Entries streams all entries: those of a file as they come, those of a query by account id
	// in the order of bytes. An error ends them; it names the flag and the place.
	Entries(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error]
	// Wrong makes an error about the content name the flag.
	Wrong(err error) error
	// Unit is what the places of entries count: line or row.
	Unit() string
	Close()
}

// warnUnverified prints that the ledger's PostgreSQL is not asked for verified TLS.
func warnUnverified(f *flags.LedgerFlags, stderr io.Writer) {
	if f.LedgerURL != "" && flags.Unverified(f.LedgerURL) {
		_, _ = fmt.Fprintf(stderr, "warning: --ledger-url (LEDGER_URL): %s\n", flags.UnverifiedText)
	}
}

// openSource opens the ledger that the flags name.
func openSource(ctx context.Context, f *flags.LedgerFlags) (Source, error) {
	if f.LedgerURL != "" {
		return connect(ctx, f)
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

// Entries implements Source.
func (l *file) Entries(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for entry, err := range ledger.ReadCSV(io.TeeReader(l.ReadCloser, l.sum), layout) {
			if err != nil {
				err = l.Wrong(err)
			} else {
				err = ctx.Err()
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// Wrong implements Source.
func (l *file) Wrong(err error) error {
	return exit.Usagef("--ledger (LEDGER): %s: %w", l.name, err)
}

// Unit implements Source.
func (*file) Unit() string { return "line" }

// Close implements Source.
func (l *file) Close() { _ = l.ReadCloser.Close() } // it was only read

// query is a ledger in another PostgreSQL.
type query struct {
	conn *pgx.Conn
	text string
}

func connect(ctx context.Context, f *flags.LedgerFlags) (*query, error) {
	cfg, err := pgx.ParseConfig(f.LedgerURL)
	if err != nil {
		return nil, exit.Usagef("--ledger-url (LEDGER_URL): %s", errclass.Safe(err))
	}
	if f.LedgerPasswordFile != "" {
		if cfg.Password, err = flags.FromFile(flags.LedgerPasswordFlag, f.LedgerPasswordFile); err != nil {
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

// sorted has the ledger's database sort the operator's query, by bytes, so that no collation
// matters. The line break ends a comment at the query's end.
const sorted = "SELECT * FROM (\n%s\n) AS ledger ORDER BY convert_to(account_id::text, 'UTF8')"

// errStopped ends a query whose reader wants no more entries.
var errStopped = errors.New("stopped")

// Entries implements Source. The answer is one snapshot of the ledger. It is read as text, so no
// number goes through a float, whatever the types of the columns.
func (l *query) Entries(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		err := l.each(ctx, layout, func(entry ledger.Entry) error {
			if !yield(entry, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Entry{}, err)
		}
	}
}

// each runs the query and fn for each entry. An error of fn stays as it is.
func (l *query) each(ctx context.Context, layout ledger.Layout, fn func(ledger.Entry) error) error {
	return pgx.BeginTxFunc(ctx, l.conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		text := fmt.Sprintf(sorted, strings.TrimRight(l.text, "; \t\r\n"))
		rows, err := tx.Query(ctx, text, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
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
			if entry, own = ledger.ParseNullable(*texts); own != nil {
				own = placed(l, row, own)
				return own
			}
			entry.Place = row
			own = fn(entry)
			return own
		})
		if own != nil || err == nil {
			return own
		}
		return l.failed(err)
	})
}

// columns returns where the texts of the ledger's columns go, and where each column of the answer goes.
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
		return nil, nil, l.Wrong(err)
	}
	texts, into := new(ledger.Texts), make([]any, len(fields))
	for i, at := range columns {
		if at >= 0 {
			into[at] = &texts[i]
		}
	}
	return texts, into, nil
}

// Wrong implements Source.
func (l *query) Wrong(err error) error {
	return exit.Usagef("--ledger-query (LEDGER_QUERY): %w", err)
}

// failed makes an error of a query that cannot work a wrong usage, and no other.
func (l *query) failed(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && strings.HasPrefix(server.Code, "42") {
		return exit.Usagef("--ledger-query (LEDGER_QUERY): %s", errclass.Safe(err))
	}
	return fmt.Errorf("query the ledger: %w", err)
}

// Unit implements Source.
func (*query) Unit() string { return "row" }

// Close implements Source.
func (l *query) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // it was only read from
}
