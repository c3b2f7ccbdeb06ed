package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/ledger"
)

// ledgerSource is where the ledger is read from.
type ledgerSource interface {
	// each hands over every entry, in any order.
	each(ctx context.Context, fn func(ledger.Entry) error) error
	// named makes errors about entries name the source and its places.
	named(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error]
	close()
}

// openLedger opens the ledger that the flags name.
func (c *Cmd) openLedger(ctx context.Context) (ledgerSource, error) {
	if c.LedgerURL != "" {
		return c.connectLedger(ctx)
	}
	if c.Ledger == "-" {
		return &ledgerFile{name: "standard input", file: io.NopCloser(os.Stdin)}, nil
	}
	file, err := os.Open(c.Ledger)
	if err != nil {
		return nil, exit.Usagef("--ledger (LEDGER): %w", err)
	}
	return &ledgerFile{name: c.Ledger, file: file}, nil
}

// ledgerFile is a ledger in CSV.
type ledgerFile struct {
	name string
	file io.ReadCloser
}

func (l *ledgerFile) each(ctx context.Context, fn func(ledger.Entry) error) error {
	for entry, err := range ledger.ReadCSV(l.file) {
		if err != nil {
			return l.wrong(err)
		}
		if err := fn(entry); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (l *ledgerFile) wrong(err error) error {
	return exit.Usagef("--ledger (LEDGER): %s: %w", l.name, err)
}

func (l *ledgerFile) named(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error] {
	return naming(entries, func(d *ledger.DuplicateError) error {
		return l.wrong(fmt.Errorf("account %q is there twice, in lines %d and %d", d.AccountID, d.First, d.Second))
	})
}

func (l *ledgerFile) close() { _ = l.file.Close() } // it was only read

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

// ledgerQuery is a ledger in a PostgreSQL of its own.
type ledgerQuery struct {
	conn  *pgx.Conn
	query string
}

const ledgerPasswordFileFlag = "--ledger-password-file (LEDGER_PASSWORD_FILE)"

func (c *Cmd) connectLedger(ctx context.Context) (*ledgerQuery, error) {
	cfg, err := pgx.ParseConfig(c.LedgerURL)
	if err != nil {
		return nil, exit.Usagef("--ledger-url (LEDGER_URL): %s", errclass.Safe(err))
	}
	if c.LedgerPasswordFile != "" {
		if cfg.Password, err = connect.FromFile(ledgerPasswordFileFlag, c.LedgerPasswordFile); err != nil {
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
	return &ledgerQuery{conn, c.LedgerQuery}, nil
}

// each streams the answer, which is one snapshot of the ledger, as text: whatever the
// types of its columns, no number goes through a float.
func (l *ledgerQuery) each(ctx context.Context, fn func(ledger.Entry) error) error {
	return pgx.BeginTxFunc(ctx, l.conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, l.query, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
		if err != nil {
			return l.failed(err)
		}
		defer rows.Close()
		var account, version, balance *string
		into, err := l.columns(rows, &account, &version, &balance)
		if err != nil {
			return err
		}
		row, own := int64(0), error(nil)
		_, err = pgx.ForEachRow(rows, into, func() error {
			row++
			var entry ledger.Entry
			if entry, own = parseNullable(account, version, balance); own != nil {
				own = l.wrong(fmt.Errorf("row %d: %w", row, own))
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

// columns says where each column of the answer goes.
func (l *ledgerQuery) columns(rows pgx.Rows, account, version, balance **string) ([]any, error) {
	fields := rows.FieldDescriptions()
	if len(fields) == 0 { // the query failed, or answers nothing at all
		rows.Close()
		if err := rows.Err(); err != nil {
			return nil, l.failed(err)
		}
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	at, err := ledger.FindColumns(names)
	if err != nil {
		return nil, l.wrong(err)
	}
	into := make([]any, len(fields))
	into[at.Account], into[at.Version], into[at.Balance] = account, version, balance
	return into, nil
}

func parseNullable(account, version, balance *string) (ledger.Entry, error) {
	for _, f := range []struct {
		name string
		text *string
	}{{ledger.FieldAccount, account}, {ledger.FieldVersion, version}, {ledger.FieldBalance, balance}} {
		if f.text == nil {
			return ledger.Entry{}, &ledger.FieldError{Field: f.name, Reason: "is null"}
		}
	}
	return ledger.Parse(*account, *version, *balance)
}

func (l *ledgerQuery) wrong(err error) error {
	return exit.Usagef("--ledger-query (LEDGER_QUERY): %w", err)
}

// failed tells a query that cannot work from a server that does not.
func (l *ledgerQuery) failed(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && strings.HasPrefix(server.Code, "42") {
		return exit.Usagef("--ledger-query (LEDGER_QUERY): %s", errclass.Safe(err))
	}
	return fmt.Errorf("query the ledger: %w", err)
}

func (l *ledgerQuery) named(entries iter.Seq2[ledger.Entry, error]) iter.Seq2[ledger.Entry, error] {
	return naming(entries, func(d *ledger.DuplicateError) error {
		return l.wrong(fmt.Errorf("account %q is there twice, in rows %d and %d", d.AccountID, d.First, d.Second))
	})
}

func (l *ledgerQuery) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // it was only read from
}
