// Package fromledger has the flags that say where an authoritative ledger is, and reads it.
package fromledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/memory"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/internal/ledger"
)

// LedgerFlags say where the ledger is.
type LedgerFlags struct {
	Ledger parse.File `env:"LEDGER" placeholder:"FILE" group:"Ledger" help:"The ledger as CSV, with a header; - for standard input."`
	ServerFlags
	memory.LimitFlags
}

// ServerFlags say how the ledger's server is reached, and what it is asked.
type ServerFlags struct {
	LedgerURL          string `json:"-" name:"ledger-url" env:"LEDGER_URL" placeholder:"URL" group:"Ledger" help:"The ledger's PostgreSQL, e.g. postgres://auditor@ledger:5432/core."`
	LedgerQuery        string `json:"-" env:"LEDGER_QUERY" placeholder:"SQL" group:"Ledger" help:"Query for --ledger-url that returns the ledger's columns."`
	LedgerPasswordFile string `json:"-" env:"LEDGER_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Ledger" help:"File that holds the password of the ledger's PostgreSQL, instead of its URL."`
}

// LedgerServer are the flags themselves.
func (f *ServerFlags) LedgerServer() *ServerFlags { return f }

const passwordFileFlag = "--ledger-password-file (LEDGER_PASSWORD_FILE)"

// Check refuses flags that do not go together. example is a query.
func (f *LedgerFlags) Check(example string) error {
	switch {
	case !f.Ledger.Given() && f.LedgerURL == "":
		return exit.Usagef("--ledger or --ledger-url (LEDGER, LEDGER_URL): say where the ledger is")
	case f.Ledger.Given() && f.LedgerURL != "":
		return exit.Usagef("--ledger and --ledger-url (LEDGER, LEDGER_URL): give only one of them")
	case f.LedgerURL != "" && f.LedgerQuery == "":
		return exit.Usagef("--ledger-query (LEDGER_QUERY): is needed with --ledger-url, e.g. %q", example)
	case f.LedgerURL == "" && f.LedgerQuery != "":
		return exit.Usagef("--ledger-query (LEDGER_QUERY): needs --ledger-url")
	case f.LedgerURL == "" && f.LedgerPasswordFile != "":
		return exit.Usagef("%s: needs --ledger-url", passwordFileFlag)
	case f.LedgerPasswordFile != "" && connect.HoldsPassword(f.LedgerURL):
		return exit.Usagef("%s: --ledger-url (LEDGER_URL) holds a password too; take it out of there", passwordFileFlag)
	}
	return f.CheckLimit()
}

// Load reads all of the ledger into memory. check, which may be nil, sees each entry first.
// remedy is what helps besides more memory when the ledger is too large.
func (f *LedgerFlags) Load(
	ctx context.Context, source Source, layout ledger.Layout, std *output.Streams, check func(*ledger.Entry) error, remedy string,
) (*ledger.Table, error) {
	plan := memory.Share(f.Resident())
	plan.Apply()
	table := ledger.NewTable(plan.Ledger)
	shown := output.NewProgress(std.Err, "ledger read")
	defer shown.Done()
	for e, err := range source.Entries(ctx, layout) {
		if err == nil && check != nil {
			err = placed(source, e.Place, check(&e))
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
	return table, placed(source, 0, table.Sort())
}

// Sorted streams the ledger by account id in the order of bytes. A file is read into memory
// first; a query is sorted by its database.
func (f *LedgerFlags) Sorted(ctx context.Context, source Source, layout ledger.Layout, std *output.Streams) (iter.Seq2[ledger.Entry, error], error) {
	if f.LedgerURL == "" {
		table, err := f.Load(ctx, source, layout, std, nil, "use --ledger-url, which its database sorts")
		if err != nil {
			return nil, err
		}
		return WithoutErrors(table.Entries()), nil
	}
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range ledger.Ascending(source.Entries(ctx, layout)) {
			if !yield(e, placed(source, 0, err)) {
				return
			}
		}
	}, nil
}

// WithoutErrors are entries that can be read without an error.
func WithoutErrors(entries iter.Seq[ledger.Entry]) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// placed names the flag and the places of wrong entries.
func placed(source Source, place int64, err error) error {
	var field *ledger.FieldError
	var duplicate *ledger.DuplicateError
	switch {
	case errors.As(err, &duplicate):
		return source.Wrong(fmt.Errorf("account %q is there twice, in %ss %d and %d", duplicate.AccountID, source.Unit(), duplicate.First, duplicate.Second))
	case errors.As(err, &field) && place > 0:
		return source.Wrong(fmt.Errorf("%s %d: %w", source.Unit(), place, err))
	default:
		return err
	}
}
