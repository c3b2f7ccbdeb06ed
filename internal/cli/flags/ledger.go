package flags

import "projector/internal/cli/exit"

// LedgerFlags are the flags of a ledger: a file or a server.
type LedgerFlags struct {
	Ledger File `env:"LEDGER" placeholder:"FILE" group:"Ledger" help:"The ledger as CSV, with a header; - for standard input."`
	LedgerServerFlags
	LimitFlags
}

// LedgerServerFlags are the flags of the ledger's server and the query.
type LedgerServerFlags struct {
	LedgerURL          string `json:"-" name:"ledger-url" env:"LEDGER_URL" type:"url" placeholder:"URL" group:"Ledger" help:"The ledger's PostgreSQL, e.g. postgres://auditor@ledger:5432/core."`
	LedgerQuery        string `json:"-" env:"LEDGER_QUERY" placeholder:"SQL" group:"Ledger" help:"Query for --ledger-url that returns the ledger's columns."`
	LedgerPasswordFile string `json:"-" env:"LEDGER_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Ledger" help:"File that holds the password of the ledger's PostgreSQL, instead of its URL."`
}

const ledgerPasswordFlag = "--ledger-password-file (LEDGER_PASSWORD_FILE)"

// LedgerPassword returns the password in the file, or "" without a file.
func (f *LedgerServerFlags) LedgerPassword() (string, error) {
	password, err := passwordFile(ledgerPasswordFlag, f.LedgerPasswordFile, "--ledger-url (LEDGER_URL)", f.LedgerURL)
	if password == nil {
		return "", err
	}
	return password()
}

// Check refuses flags that are missing, invalid or contradictory. The text example is a query that
// the error shows.
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
		return exit.Usagef("%s: needs --ledger-url", ledgerPasswordFlag)
	}
	if _, err := f.LedgerPassword(); err != nil {
		return err
	}
	return f.CheckLimit()
}
