package ledger

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
)

// Kind says in what way an account differs. Its names are public surface.
type Kind string

// The kinds of differences.
const (
	Different Kind = "different" // the balances differ at one version
	Missing   Kind = "missing"   // the read model does not know it
	Unknown   Kind = "unknown"   // the ledger does not know it
	Behind    Kind = "behind"    // no difference: it is at a lower version than the ledger's
)

// Account is one account as the read model has it.
type Account struct {
	ID      string
	Exists  bool // false: it only waits for its first version
	Version int64
	Balance string // decimal
	// Since: the read model has written it since the ledger was read, or may have.
	Since bool
}

// Difference is one account that differs.
type Difference struct {
	AccountID     string
	Kind          Kind
	LedgerVersion *int64 // nil: the ledger does not know it
	Version       *int64 // nil: it has no row in the read model
	LedgerBalance string
	Balance       string
}

// Report is what a comparison has found. Checked is the sum of the other counts.
type Report struct {
	Checked, Matched, Behind, Ahead, Different int64
	Differences                                []Difference // the first of them
}

// Comparison compares two streams of accounts, each by account id in the order of bytes. It
// pulls the ledger's and receives the read model's.
type Comparison struct {
	// ListBehind has the accounts that are behind among the Differences. They are not counted
	// as different.
	ListBehind bool

	next   func() (Entry, error, bool)
	limit  int
	entry  Entry
	ended  bool
	last   string
	begun  bool
	report Report
}

// NewComparison compares with the ledger that next returns, as iter.Pull2 makes it. It lists
// at most limit differences.
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

// Checked is how many accounts have been compared.
func (c *Comparison) Checked() int64 { return c.report.Checked }

// Compare compares the read model's next account.
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

// End returns the report, after the read model's last account.
func (c *Comparison) End() (Report, error) {
	for !c.ended {
		c.missing()
		if err := c.advance(); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

// compareBoth compares an account that both know.
func (c *Comparison) compareBoth(a *Account) {
	r := &c.report
	r.Checked++
	switch balance, isNumber := Canonical(a.Balance); {
	case !a.Exists, a.Version < c.entry.Version:
		r.Behind++
		if c.ListBehind {
			c.list(c.of(a, Behind))
		}
	case a.Version > c.entry.Version:
		r.Ahead++
	case isNumber && balance == c.entry.Balance:
		r.Matched++
	default:
		c.differs(c.of(a, Different))
	}
}

// of is the difference of an account that both know.
func (c *Comparison) of(a *Account, kind Kind) Difference {
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

// unknown counts an account that the ledger does not have: as ahead, when it may have
// been opened since.
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
		d.LedgerVersion = new(*d.LedgerVersion) // the entry is written over
	}
	if d.Version != nil {
		d.Version = new(*d.Version)
	}
	c.report.Differences = append(c.report.Differences, d)
}

// Sample draws n of the entries at random, all with the same chance, and returns them by account
// id. It reads all entries, so that no wrong entry passes unseen.
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
