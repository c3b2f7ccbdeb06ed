// Package fromledger has the flags that say where an authoritative ledger is, and reads it.
package fromledger

import (
	"context"
	"iter"

	"projector/internal/cli/connect"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/cli/parse"
	"projector/internal/ledger"
)

// LedgerFlags say where the ledger is.
type LedgerFlags struct {
	Ledger     parse.File `env:"LEDGER" kept:"" placeholder:"FILE" group:"Ledger" help:"The ledger as CSV, with a header; - for standard input."`
	SortMemory int        `default:"64" placeholder:"MB" help:"Memory for sorting the ledger; the rest is sorted in temporary files (default 64)."`
	ServerFlags
}

// ServerFlags say how the ledger's server is reached, and what it is asked.
type ServerFlags struct {
	LedgerURL          string `name:"ledger-url" env:"LEDGER_URL" placeholder:"URL" group:"Ledger" local:"" help:"The ledger's PostgreSQL, e.g. postgres://auditor@ledger:5432/core."`
	LedgerQuery        string `env:"LEDGER_QUERY" placeholder:"SQL" group:"Ledger" local:"" help:"Query for --ledger-url that returns the ledger's columns."`
	LedgerPasswordFile string `env:"LEDGER_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Ledger" local:"" help:"File that holds the password of the ledger's PostgreSQL, instead of its URL."`
}

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
	case f.SortMemory < 1 || f.SortMemory > 1<<20:
		return exit.Usagef("--sort-memory (PROJECTOR_SORT_MEMORY): must be between 1 and 1048576 MB")
	}
	return nil
}

// Sorted is a ledger that was read, by account id in the order of bytes.
type Sorted struct {
	Entries iter.Seq2[ledger.Entry, error] // can be read again
	Number  int64
	sorter  *ledger.Sorter
}

// Sort reads all of the ledger. check, which may be nil, sees each entry first. The result is
// to be closed.
func (f *LedgerFlags) Sort(ctx context.Context, source Source, layout ledger.Layout, std *output.Streams, check func(*ledger.Entry) error) (*Sorted, error) {
	s := &Sorted{sorter: ledger.NewSorter(f.SortMemory<<20, "")}
	s.Entries = source.Named(s.sorter.Sorted())
	shown := output.NewProgress(std.Err, "ledger read")
	defer shown.Done()
	err := source.Each(ctx, layout, func(e ledger.Entry) error {
		if check != nil {
			if err := check(&e); err != nil {
				return err
			}
		}
		s.Number++
		shown.Update(s.Number, 0)
		return s.sorter.Add(e)
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives its memory and its files back.
func (s *Sorted) Close() { _ = s.sorter.Close() } // files that are gone already
