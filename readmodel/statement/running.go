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
	sum     decimal
	digits  int // decimals of the currency
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
	r.sum, _ = parseDecimal(balance) // written by PostgreSQL, and never NaN
	r.denominate(currency)
}

// denominate sets the account's currency, if it is not known yet.
func (r *Running) denominate(currency string) {
	if currency == "" || r.Currency != "" {
		return
	}
	r.Currency = currency
	if c, known := event.CurrencyByCode(currency); known {
		r.digits = c.Digits()
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
	d, isNumber := parseDecimal(*amount)
	if !isNumber || currency != r.Currency {
		if r.Other == 0 {
			r.Other = version
		}
		return
	}
	r.sum = r.sum.plus(d)
}

// Balance returns the sum and whether the sum is complete. If so, the text has at least the
// decimals of the currency. Otherwise the text is empty.
func (r *Running) Balance() (text string, known bool) {
	if r.Missing > 0 || r.Other != 0 {
		return "", false
	}
	return r.sum.plus(decimal{scale: r.digits}).String(), true
}

// Is reports whether the sum equals a balance of the read model.
func (r *Running) Is(balance, currency string) bool {
	d, isNumber := parseDecimal(balance)
	return isNumber && currency == r.Currency && d.minus(r.sum).isZero()
}

// decimal is the number units / 10^scale.
type decimal struct {
	units *big.Int // nil means 0
	scale int
}

// parseDecimal parses a numeric in PostgreSQL's text format. It returns false for NaN and infinity.
func parseDecimal(text string) (decimal, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	units, isNumber := new(big.Int).SetString(whole+fraction, 10)
	return decimal{units, len(fraction)}, isNumber
}

func (d decimal) at(scale int) *big.Int {
	if d.units == nil {
		return new(big.Int)
	}
	ten := big.NewInt(10)
	return new(big.Int).Mul(d.units, ten.Exp(ten, big.NewInt(int64(scale-d.scale)), nil))
}

func (d decimal) plus(e decimal) decimal {
	scale := max(d.scale, e.scale)
	return decimal{new(big.Int).Add(d.at(scale), e.at(scale)), scale}
}

func (d decimal) minus(e decimal) decimal {
	scale := max(d.scale, e.scale)
	return decimal{new(big.Int).Sub(d.at(scale), e.at(scale)), scale}
}

func (d decimal) isZero() bool { return d.units == nil || d.units.Sign() == 0 }

// String returns the decimal with exactly scale decimals.
func (d decimal) String() string {
	units := d.at(d.scale)
	digits := new(big.Int).Abs(units).String()
	if missing := d.scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if d.scale > 0 {
		digits = digits[:len(digits)-d.scale] + "." + digits[len(digits)-d.scale:]
	}
	if units.Sign() < 0 {
		return "-" + digits
	}
	return digits
}
