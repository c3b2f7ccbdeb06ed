package statement

import (
	"math/big"
	"strings"

	"projector/projection/event"
)

// Span is a range of versions, including From and To.
type Span struct{ From, To int64 }

// Running adds the entries of an account in the order of their versions. The sum is the balance,
// unless a version is missing or cannot be added.
type Running struct {
	Skipped []int64 // versions that an operator skipped, sorted
	next    int64   // the expected version
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

// NewRunning starts the sum of an account. The parameter first is the account's first version. The
// slice skipped is sorted and must not be changed by the caller.
func NewRunning(first int64, skipped []int64) *Running {
	return &Running{Skipped: skipped, next: first}
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

// Reach counts the remaining versions before the given one. Each of them is missing or was skipped.
func (r *Running) Reach(version int64) {
	for r.next < version {
		to := version
		if r.isSkipped(r.next) {
			r.next++
			continue
		}
		if len(r.Skipped) > 0 && r.Skipped[0] < version {
			to = r.Skipped[0]
		}
		if r.Missing == 0 {
			r.First = Span{r.next, to - 1}
		}
		r.Missing += to - r.next
		r.next = to
	}
}

// PassSkipped advances over the next versions, as long as they were skipped.
func (r *Running) PassSkipped() {
	for r.isSkipped(r.next) {
		r.next++
	}
}

// isSkipped reports whether a version was skipped. It removes lower versions from Skipped.
func (r *Running) isSkipped(version int64) bool {
	for len(r.Skipped) > 0 && r.Skipped[0] < version {
		r.Skipped = r.Skipped[1:]
	}
	return len(r.Skipped) > 0 && r.Skipped[0] == version
}

// Through returns the version before the next expected one.
func (r *Running) Through() int64 { return r.next - 1 }

// Add adds an entry. The amount is a decimal, or nil for an event without an amount.
func (r *Running) Add(version int64, amount *string, currency string) {
	r.Reach(version)
	skipped := r.isSkipped(version)
	r.next = max(r.next, version+1)
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
