package ledger

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Kind says how an account of the read model differs from the ledger. The values are part of the
// public output.
type Kind string

// All kinds except Behind are errors.
const (
	Different Kind = "different" // the versions are equal and the balances differ
	Missing   Kind = "missing"   // the read model does not have the account
	Unknown   Kind = "unknown"   // the ledger does not have the account
	Behind    Kind = "behind"    // not an error: the read model's version is lower than the ledger's
)

// Account is an account of the read model.
type Account struct {
	ID      string
	Exists  bool // false if no event was applied yet and the account only waits for one
	Version int64
	Balance string // decimal number
	// Since is true if the account was written, or may have been written, after the ledger was
	// read.
	Since bool
}

// Difference describes an account that is not equal in the ledger and in the read model.
type Difference struct {
	AccountID     string
	Kind          Kind
	LedgerVersion *int64 // nil if the ledger does not have the account
	Version       *int64 // nil if no event was applied yet, or if the account is missing
	LedgerBalance string
	Balance       string
}

// Report is the result of a comparison. Checked is the sum of Matched, Behind, Ahead and Different.
type Report struct {
	Checked, Matched, Behind, Ahead, Different int64
	Differences                                []Difference // at most the limit of NewComparison
}

// Comparison compares two streams of accounts, both sorted by the bytes of the account id. It pulls
// the accounts of the ledger, while the caller passes the accounts of the read model to Compare.
type Comparison struct {
	// ListBehind adds the accounts whose version is lower than the ledger's to Report.Differences.
	// These accounts are still not counted in Report.Different.
	ListBehind bool

	next   func() (Entry, error, bool)
	limit  int
	entry  Entry
	ended  bool
	last   string
	begun  bool
	report Report
}

// NewComparison returns a Comparison with the ledger's entries, which the function next returns
// (see iter.Pull2). The report lists at most limit differences.
func NewComparison(next func() (Entry, error, bool), limit int) (*Comparison, error) {
	c := &Comparison{next: next, limit: limit}
	err := c.advance()
	return c, err
}

func (c *Comparison) advance() (err error) {
	entry, err, more := c.next()
	c.entry, c.ended = entry, !more
	return err
}

// Ended reports whether the ledger has no more accounts.
func (c *Comparison) Ended() bool { return c.ended }

// Checked returns how many accounts have been compared.
func (c *Comparison) Checked() int64 { return c.report.Checked }

// Compare compares the next account of the read model with the ledger's account of the same id.
// Accounts of the ledger with lower ids that were not compared yet count as missing in the read
// model.
func (c *Comparison) Compare(a *Account) error {
	if c.begun && a.ID <= c.last {
		return fmt.Errorf("the read model is not in the order of its account ids: %q comes after %q", a.ID, c.last)
	}
	c.begun, c.last = true, a.ID
	for !c.ended && c.entry.AccountID < a.ID {
		c.missing()
		if err := c.advance(); err != nil {
			return err
		}
	}
	if c.ended || c.entry.AccountID > a.ID {
		c.unknown(a)
		return nil
	}
	c.compareBoth(a)
	return c.advance()
}

// End is called after the read model's last account and returns the report.
func (c *Comparison) End() (Report, error) {
	for !c.ended {
		c.missing()
		if err := c.advance(); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// compareBoth compares an account that the ledger and the read model both have.
func (c *Comparison) compareBoth(a *Account) {
	r := &c.report
	r.Checked++
	switch balance, isNumber := Canonical(a.Balance); {
	case !a.Exists, a.Version < c.entry.Version:
		r.Behind++
		if c.ListBehind {
			c.list(c.difference(a, Behind))
		}
	case a.Version > c.entry.Version:
		r.Ahead++
	case isNumber && balance == c.entry.Balance:
		r.Matched++
	default:
		c.differs(c.difference(a, Different))
	}
}

// difference returns the Difference for an account that the ledger and the read model both have.
func (c *Comparison) difference(a *Account, kind Kind) Difference {
	d := Difference{AccountID: a.ID, Kind: kind, LedgerVersion: &c.entry.Version, LedgerBalance: c.entry.Balance}
	if a.Exists {
		d.Version, d.Balance = &a.Version, a.Balance
	}
	return d
}

func (c *Comparison) missing() {
	c.report.Checked++
	c.differs(Difference{
		AccountID: c.entry.AccountID, Kind: Missing, LedgerVersion: &c.entry.Version, LedgerBalance: c.entry.Balance,
	})
}

// unknown counts an account that the ledger does not have. The account counts as ahead if it may
// have been opened after the ledger was read.
func (c *Comparison) unknown(a *Account) {
	c.report.Checked++
	if a.Since {
		c.report.Ahead++
		return
	}
	d := Difference{AccountID: a.ID, Kind: Unknown}
	if a.Exists {
		d.Version, d.Balance = &a.Version, a.Balance
	}
	c.differs(d)
}

func (c *Comparison) differs(d Difference) {
	c.report.Different++
	c.list(d)
}

func (c *Comparison) list(d Difference) {
	if len(c.report.Differences) >= c.limit {
		return
	}
	if d.LedgerVersion != nil {
		d.LedgerVersion = new(*d.LedgerVersion) // c.entry is overwritten by the next entry
	}
	if d.Version != nil {
		d.Version = new(*d.Version)
	}
	c.report.Differences = append(c.report.Differences, d)
}

// Sample returns n random entries, sorted by account id. Each entry has the same chance. It reads
// all entries, so an error in any of them is returned.
func Sample(entries iter.Seq2[Entry, error], n int, random *rand.Rand) ([]Entry, error) {
	drawn, seen := make([]Entry, 0, min(n, 1<<16)), 0
	for entry, err := range entries {
		if err != nil {
			return nil, err
		}
		if seen++; len(drawn) < n {
			drawn = append(drawn, entry)
		} else if at := random.IntN(seen); at < n {
			drawn[at] = entry
		}
	}
	slices.SortFunc(drawn, func(a, b Entry) int { return strings.Compare(a.AccountID, b.AccountID) })
	return drawn, nil
}
