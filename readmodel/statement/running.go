package statement

import (
	"math/big"
	"strings"

	"projector/projection/event"
)

// Span is a run of versions, both ends in it.
type Span struct{ From, To int64 }

// Running adds an account's entries up in the order of their versions, which is what makes
// its balance up. The sum is known until a version is missing, or cannot be added.
type Running struct {
	Skipped []int64 // versions that were passed over on purpose, in order: nothing is added for them
	next    int64   // the version that is expected
	sum     decimal
	digits  int // of the currency
	// Currency is that of the first entry that has one.
	Currency string
	// Missing counts the versions without an entry, but for those passed over; First is the
	// first run of them.
	Missing int64
	First   Span
	// Other is the first version that cannot be added: it is in another currency, or its
	// amount is no number. 0: none.
	Other int64
}

// NewRunning begins an account whose first version is first. It keeps skipped, which is in
// order.
func NewRunning(first int64, skipped []int64) *Running {
	return &Running{Skipped: skipped, next: first}
}

// Open has the sum begin with an opening's balance.
func (r *Running) Open(balance, currency string) {
	r.sum, _ = parseDecimal(balance) // PostgreSQL's own, and no NaN
	r.denominate(currency)
}

// denominate takes the first currency there is for the account's.
func (r *Running) denominate(currency string) {
	if currency == "" || r.Currency != "" {
		return
	}
	r.Currency = currency
	if c, known := event.CurrencyByCode(currency); known {
		r.digits = c.Digits()
	}
}

// Reach goes on to the version before which an entry or the end is: what is between is missing
// or was passed over.
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

// PassSkipped goes on after the versions that come next and were passed over.
func (r *Running) PassSkipped() {
	for r.isSkipped(r.next) {
		r.next++
	}
}

// isSkipped forgets the versions passed over before this one.
func (r *Running) isSkipped(version int64) bool {
	for len(r.Skipped) > 0 && r.Skipped[0] < version {
		r.Skipped = r.Skipped[1:]
	}
	return len(r.Skipped) > 0 && r.Skipped[0] == version
}

// Through is the version up to which entries were added.
func (r *Running) Through() int64 { return r.next - 1 }

// Add adds an entry; amount is a decimal, nil: none.
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

// Balance is the sum, with at least the decimals of its currency, and whether it is known.
func (r *Running) Balance() (text string, known bool) {
	if r.Missing > 0 || r.Other != 0 {
		return "", false
	}
	return r.sum.plus(decimal{scale: r.digits}).String(), true
}

// Is reports whether the sum is a balance of the read model.
func (r *Running) Is(balance, currency string) bool {
	d, isNumber := parseDecimal(balance)
	return isNumber && currency == r.Currency && d.minus(r.sum).isZero()
}

// decimal is units divided by 10 to the power of scale.
type decimal struct {
	units *big.Int // nil: 0
	scale int
}

// parseDecimal reads a numeric as PostgreSQL writes it. NaN and infinity are none.
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

// String is the decimal with exactly its scale.
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
