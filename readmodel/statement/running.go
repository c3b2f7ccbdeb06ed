package statement

import (
	"math/big"
	"strings"

	"projector/projection"
	"projector/projection/event"
)

// Span is a range of versions, including From and To.
type Span struct{ From, To int64 }

// Running adds the entries of an account in the order of their versions. The sum is the balance,
// unless a version is missing or cannot be added.
type Running struct {
	Skipped []int64 // versions that an operator skipped, sorted
	through int64   // the version up to which all versions were counted
	sum     big.Rat
	digits  int // decimals of the currency, or of an amount with more decimals
	// Currency is the currency of the first entry that has one.
	Currency string
	// Missing counts the versions that have no entry and were not skipped. First is the first range
	// of these versions.
	Missing int64
	First   Span
	// Other is the first version that cannot be added, because its currency differs or its amount
	// is not a number. It is 0 if there is none.
	Other int64
}

// NewRunning returns a sum of 0. The events to add begin after the given version. The slice skipped
// is sorted, and the caller must not change it.
func NewRunning(after int64, skipped []int64) *Running {
	return &Running{Skipped: skipped, through: after}
}

// Open starts the sum with the balance of the account's opening.
func (r *Running) Open(balance, currency string) {
	if d, decimals, isNumber := parseDecimal(balance); isNumber {
		r.add(d, decimals)
	}
	r.denominate(currency)
}

func (r *Running) add(d *big.Rat, decimals int) {
	r.sum.Add(&r.sum, d)
	r.digits = max(r.digits, decimals)
}

// denominate sets the account's currency, if it is not known yet.
func (r *Running) denominate(currency string) {
	if currency == "" || r.Currency != "" {
		return
	}
	r.Currency = currency
	if c, known := event.CurrencyByCode(currency); known {
		r.digits = max(r.digits, c.Digits())
	}
}

// Reach counts the remaining versions up to the given one. Each of them is missing or was skipped.
func (r *Running) Reach(version int64) {
	for r.through < version {
		next, to := r.through+1, version
		if r.isSkipped(next) {
			r.through = next
			continue
		}
		if len(r.Skipped) > 0 && r.Skipped[0] <= version {
			to = r.Skipped[0] - 1
		}
		if r.Missing == 0 {
			r.First = Span{next, to}
		}
		r.Missing += to - r.through
		r.through = to
	}
}

// PassSkipped advances over the next versions, as long as they were skipped.
func (r *Running) PassSkipped() {
	for r.through < projection.LastVersion && r.isSkipped(r.through+1) {
		r.through++
	}
}

// isSkipped reports whether a version was skipped. It removes lower versions from Skipped.
func (r *Running) isSkipped(version int64) bool {
	for len(r.Skipped) > 0 && r.Skipped[0] < version {
		r.Skipped = r.Skipped[1:]
	}
	return len(r.Skipped) > 0 && r.Skipped[0] == version
}

// Through returns the version up to which all versions were counted.
func (r *Running) Through() int64 { return r.through }

// Add adds an entry. The amount is a decimal, or nil for an event without an amount.
func (r *Running) Add(version int64, amount *string, currency string) {
	r.Reach(version - 1)
	skipped := r.isSkipped(version)
	r.through = max(r.through, version)
	if skipped {
		return
	}
	r.denominate(currency)
	if amount == nil {
		return
	}
	d, decimals, isNumber := parseDecimal(*amount)
	if !isNumber || currency != r.Currency {
		if r.Other == 0 {
			r.Other = version
		}
		return
	}
	r.add(d, decimals)
}

// Balance returns the sum and whether the sum is complete. If so, the text has at least the
// decimals of the currency. Otherwise the text is empty.
func (r *Running) Balance() (text string, known bool) {
	if r.Missing > 0 || r.Other != 0 {
		return "", false
	}
	return r.sum.FloatString(r.digits), true
}

// Is reports whether the sum equals a balance of the read model.
func (r *Running) Is(balance, currency string) bool {
	d, _, isNumber := parseDecimal(balance)
	return isNumber && currency == r.Currency && d.Cmp(&r.sum) == 0
}

// parseDecimal parses a numeric in PostgreSQL's text format. It returns false for NaN and infinity.
func parseDecimal(text string) (d *big.Rat, decimals int, isNumber bool) {
	_, fraction, _ := strings.Cut(text, ".")
	d, isNumber = new(big.Rat).SetString(text)
	return d, len(fraction), isNumber
}
