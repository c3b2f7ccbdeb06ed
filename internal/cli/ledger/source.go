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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/ledger"
	"projector/readmodel"
	"projector/sql"
)

type source struct {
	name string    // for messages: the file, or the server and its database
	flag string    // the flag, for errors about the content
	unit string    // the word "line" or "row", for messages
	sum  hash.Hash // hash of the file as far as it was read; nil: a query
	// entries streams all entries. The entries of a file are in the order of the file. The entries
	// of a query are sorted by the bytes of the account id. An error names the flag and the line or
	// row, and ends the stream.
	entries func(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error]
	close   func()
}

// wrong returns a usage error about the content of the ledger.
func (s *source) wrong(err error) error { return exit.Usagef("%s: %w", s.flag, err) }

// sha256 returns the hash of the file after the file was read, or "" for a query.
func (s *source) sha256() string {
	if s.sum == nil {
		return ""
	}
	return hex.EncodeToString(s.sum.Sum(nil))
}

// placed adds the flag and the number of the line or row to an error about an entry.
func (s *source) placed(place int64, err error) error {
	var field *ledger.FieldError
	var duplicate *ledger.DuplicateError
	switch {
	case errors.As(err, &duplicate):
		return s.wrong(fmt.Errorf("account %q is there twice, in %ss %d and %d", duplicate.AccountID, s.unit, duplicate.First, duplicate.Second))
	case errors.As(err, &field) && place > 0:
		return s.wrong(fmt.Errorf("%s %d: %w", s.unit, place, err))
	default:
		return err
	}
}

// openSource opens the ledger that the flags name.
func openSource(ctx context.Context, f *flags.LedgerFlags, std *output.Streams) (*source, error) {
	s, err := chosenSource(ctx, f, std)
	if err == nil {
		s.entries = s.warningOfSpaces(std)
	}
	return s, err
}

// warningOfSpaces returns the entries of the source, and prints a warning at their end if an account
// id has white space around it. A column of type char(n) adds it, and an event's account id without
// it is another account.
func (s *source) warningOfSpaces(std *output.Streams) func(context.Context, ledger.Layout) iter.Seq2[ledger.Entry, error] {
	entries := s.entries
	return func(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error] {
		return func(yield func(ledger.Entry, error) bool) {
			spaced, first := 0, int64(0)
			for entry, err := range entries(ctx, layout) {
				if err == nil && strings.TrimSpace(entry.AccountID) != entry.AccountID {
					if spaced++; spaced == 1 {
						first = entry.Place
					}
				}
				if !yield(entry, err) {
					return
				}
			}
			if spaced > 0 {
				std.Notef("warning: %s: %d account ids begin or end with white space, as in a column of type char(n), first in %s %d: "+
					"without it in the events, these are other accounts\n", s.flag, spaced, s.unit, first)
			}
		}
	}
}

// chosenSource opens the ledger. It prints a warning if the connection to the ledger's PostgreSQL does
// not require verified TLS.
func chosenSource(ctx context.Context, f *flags.LedgerFlags, std *output.Streams) (*source, error) {
	if f.LedgerURL != "" {
		if flags.Unverified(f.LedgerURL) {
			std.Notef("warning: --ledger-url (LEDGER_URL): %s\n", flags.UnverifiedText)
		}
		return connect(ctx, f)
	}
	if f.Ledger.Stdin() {
		return fileSource("standard input", io.NopCloser(os.Stdin), std), nil
	}
	opened, err := f.Ledger.Open()
	if err != nil {
		return nil, exit.Usagef("--ledger (LEDGER): %w", err)
	}
	return fileSource(f.Ledger.String(), opened, std), nil
}

// fileSource returns the ledger of a file. If the file does not end with a line break, it may be cut
// off in its last line. A cut balance or id may still be valid, so a warning is printed.
func fileSource(name string, opened io.ReadCloser, std *output.Streams) *source {
	last := new(lastByte)
	s := &source{
		name: filepath.Base(name), flag: "--ledger (LEDGER): " + name, unit: "line", sum: sha256.New(),
		close: func() { _ = opened.Close() }, // an error does not matter after reading
	}
	s.entries = func(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error] {
		return func(yield func(ledger.Entry, error) bool) {
			for entry, err := range ledger.ReadCSV(io.TeeReader(opened, io.MultiWriter(s.sum, last)), layout) {
				if err != nil {
					err = s.wrong(err)
				} else {
					err = ctx.Err()
				}
				if !yield(entry, err) || err != nil {
					return
				}
			}
			if *last != '\n' {
				std.Notef("warning: %s: does not end with a line break: is its last line complete?\n", s.flag)
			}
		}
	}
	return s
}

// lastByte is a writer that remembers the last byte.
type lastByte byte

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*l = lastByte(p[len(p)-1])
	}
	return len(p), nil
}

// connect returns the ledger in another PostgreSQL.
func connect(ctx context.Context, f *flags.LedgerFlags) (*source, error) {
	cfg, err := pgx.ParseConfig(f.LedgerURL)
	if err != nil {
		return nil, exit.Usagef("--ledger-url (LEDGER_URL): %s", errclass.Safe(err))
	}
	if f.LedgerPasswordFile != "" {
		if cfg.Password, err = f.LedgerPassword(); err != nil {
			return nil, err
		}
	}
	conn, err := readmodel.Connect(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("reach the ledger: %w", err)
	}
	s := &source{name: fmt.Sprintf("%s:%d/%s", cfg.Host, cfg.Port, cfg.Database), flag: "--ledger-query (LEDGER_QUERY)", unit: "row"}
	s.entries = func(ctx context.Context, layout ledger.Layout) iter.Seq2[ledger.Entry, error] {
		return readmodel.Stream(func(fn func(ledger.Entry) error) error { return s.query(ctx, conn, f.LedgerQuery, layout, fn) })
	}
	s.close = func() { readmodel.CloseReading(conn) }
	return s, nil
}

// The query sorted makes the ledger's database sort the operator's query by bytes, independent of
// collations. The line break ends a comment at the end of the query.
const sorted = "SELECT * FROM (\n%s\n) AS ledger ORDER BY convert_to(account_id::text, 'UTF8')"

// query runs the operator's query and calls fn for each entry. It returns an error of fn unchanged.
// The result is one snapshot of the ledger. All columns are read as text, so no number is converted
// to a float.
func (s *source) query(ctx context.Context, conn *pgx.Conn, text string, layout ledger.Layout, fn func(ledger.Entry) error) error {
	// With the level SERIALIZABLE, PostgreSQL could refuse other transactions of the ledger because of this one.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("ledger_session")); err != nil {
			return failed(err)
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(sorted, strings.TrimRight(text, "; \t\r\n")), pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
		if err != nil {
			return failed(err)
		}
		defer rows.Close()
		texts, into, err := s.columns(rows, layout)
		if err != nil {
			return err
		}
		row, own := int64(0), error(nil)
		_, err = pgx.ForEachRow(rows, into, func() error {
			row++
			var entry ledger.Entry
			if entry, own = ledger.ParseNullable(*texts); own != nil {
				own = s.placed(row, own)
				return own
			}
			entry.Place = row
			own = fn(entry)
			return own
		})
		if own != nil || err == nil {
			return own
		}
		return failed(err)
	})
}

// columns returns the texts of the ledger's columns, and the scan targets for all columns of the
// result.
func (s *source) columns(rows pgx.Rows, layout ledger.Layout) (*ledger.Texts, []any, error) {
	fields := rows.FieldDescriptions()
	if len(fields) == 0 { // the query failed, or returns no columns
		rows.Close()
		if err := rows.Err(); err != nil {
			return nil, nil, failed(err)
		}
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	columns, err := layout.FindColumns(names)
	if err != nil {
		return nil, nil, s.wrong(err)
	}
	texts, into := new(ledger.Texts), make([]any, len(fields))
	for i, at := range columns {
		if at >= 0 {
			into[at] = &texts[i]
		}
	}
	return texts, into, nil
}

// failed makes a UsageError if the query itself is wrong. Other errors are not about usage.
func failed(err error) error {
	if server, is := errors.AsType[*pgconn.PgError](err); is && strings.HasPrefix(server.Code, "42") {
		return exit.Usagef("--ledger-query (LEDGER_QUERY): %s", errclass.Safe(err))
	}
	return fmt.Errorf("query the ledger: %w", err)
}

// load reads the whole ledger into memory. The function check, which may be nil, checks each entry
// first. If the ledger does not fit into memory, the error contains the text remedy, which names an
// alternative to more memory.
func load(
	ctx context.Context, f *flags.LedgerFlags, source *source, layout ledger.Layout, std *output.Streams, check func(*ledger.Entry) error, remedy string,
) (*ledger.Table, error) {
	plan := flags.ShareMemory(f.Resident())
	plan.Apply()
	table := ledger.NewTable(plan.Ledger)
	shown := output.NewProgress(std.Err, "ledger read")
	defer shown.Done()
	for e, err := range source.entries(ctx, layout) {
		if err == nil && check != nil {
			err = source.placed(e.Place, check(&e))
		}
		if err != nil {
			return nil, err
		}
		if !table.Add(&e) {
			return nil, exit.Refusef("the ledger does not fit into --memory-limit=%s (MEMORY_LIMIT): only its first %d accounts do; %s, or allow more memory",
				f.Resident(), table.Len(), remedy)
		}
		shown.Update(table.Len(), 0)
	}
	return table, source.placed(0, table.Sort())
}

// inOrder streams the ledger, sorted by the bytes of the account id. A file is read into memory and
// sorted. The result of a query is sorted by its database.
func inOrder(ctx context.Context, f *flags.LedgerFlags, source *source, layout ledger.Layout, std *output.Streams) (iter.Seq2[ledger.Entry, error], error) {
	if f.LedgerURL == "" {
		table, err := load(ctx, f, source, layout, std, nil, "use --ledger-url, which its database sorts")
		if err != nil {
			return nil, err
		}
		return withoutErrors(table.Entries()), nil
	}
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range ledger.Ascending(source.entries(ctx, layout)) {
			if !yield(e, source.placed(0, err)) {
				return
			}
		}
	}, nil
}

// withoutErrors converts entries to a sequence whose errors are all nil.
func withoutErrors(entries iter.Seq[ledger.Entry]) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
