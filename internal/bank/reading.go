package bank

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// reading is what the ledger makes of a record's value. flaw is the class of what
// is wrong with it, "" for nothing.
type reading struct {
	known    bool // id, account and version could be read
	id       string
	account  string
	version  int64
	kind     string
	at       time.Time
	currency string
	minor    *big.Int // minor units, nil when the event moves no money
	flaw     string
}

// paper is an event with its fields as they stand there.
type paper struct {
	EventID    *string
	EventType  *string
	AccountID  *string
	Version    *json.RawMessage
	OccurredAt *string
	Data       struct {
		Amount   json.RawMessage
		Currency *string
	}
}

// read reads a record's value.
func read(value []byte) reading {
	var p paper
	if json.Unmarshal(value, &p) != nil {
		return reading{flaw: malformed}
	}
	var r reading
	if p.EventID == nil || p.AccountID == nil || p.Version == nil || json.Unmarshal(*p.Version, &r.version) != nil || r.version < 1 {
		return reading{flaw: malformed}
	}
	r.known, r.id, r.account = true, *p.EventID, *p.AccountID
	if p.EventType == nil || p.OccurredAt == nil {
		r.flaw = malformed
		return r
	}
	r.kind = *p.EventType
	var err error
	if r.at, err = time.Parse(time.RFC3339, *p.OccurredAt); err != nil {
		r.flaw = malformed
		return r
	}
	r.flaw = r.readData(&p)
	return r
}

// readData reads currency and amount as the type of the event asks for them.
func (r *reading) readData(p *paper) (flaw string) {
	switch r.kind {
	case opened, credited, debited:
		if p.Data.Currency == nil {
			return malformed
		}
	case closed:
	default:
		return unknownEventType
	}
	if p.Data.Currency != nil {
		r.currency = *p.Data.Currency
		if _, known := digits[r.currency]; !known {
			return unsupportedCurrency
		}
	}
	if r.kind != credited && r.kind != debited {
		return ""
	}
	var amount string
	if !bytes.HasPrefix(p.Data.Amount, []byte(`"`)) || json.Unmarshal(p.Data.Amount, &amount) != nil {
		return malformed
	}
	if r.minor = minorUnits(amount, digits[r.currency]); r.minor == nil {
		return invalidAmount
	}
	return ""
}

var decimal = regexp.MustCompile(`^(0|[1-9]\d*)(\.\d+)?$`)

// minorUnits is a decimal in units of its last digit; nil when it is no amount of
// a currency with so many decimals.
func minorUnits(text string, decimals int) *big.Int {
	if !decimal.MatchString(text) {
		return nil
	}
	amount, _ := new(big.Rat).SetString(text)
	_, fraction, _ := strings.Cut(text, ".")
	amount.Mul(amount, new(big.Rat).SetInt(power(decimals)))
	if len(fraction) > decimals || amount.Sign() <= 0 || !amount.IsInt() || !amount.Num().IsInt64() {
		return nil
	}
	return amount.Num()
}
