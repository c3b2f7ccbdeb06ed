package event

import (
	"bytes"
	"errors"
	"strconv"
)

// These errors say why an amount does not match its declaration in the mapping. They do not contain
// the amount.
var (
	errAmountInteger  = errors.New("is not an integer: digits without leading zeros, a point or an exponent, as the mapping declares")
	errNegativeZero   = errors.New("is a negative zero")
	errAmountPositive = errors.New("is above zero, for which the mapping names no event type")
	errAmountNegative = errors.New("is below zero, for which the mapping names no event type")
	errAmountZero     = errors.New("is zero, for which the mapping names no event type")
	errNanos          = errors.New("is not from -999999999 to 999999999")
	errNanosSign      = errors.New("has another sign than the units")
)

// These are the reasons why the type of a value does not match the declaration in the mapping.
const (
	reasonNotNumber  = "is not a number, as the mapping declares"
	reasonNotTextual = "is not a text, as the mapping declares"
	reasonFloat      = "is a float, which holds no exact amount"
)

// declaresAmount reports whether the mapping declares another form of amounts than the contract's
// decimal texts.
func (f *decoder) declaresAmount() bool { return f.amount.Form != AmountText || f.amount.DropZeros }

// amountShape checks that the amount is present and has the right type.
func (f *decoder) amountShape(r *reading) *Fault {
	p, m := &f.places[FieldAmount], &r.found[FieldAmount]
	if p.kind != inDocument {
		_, _, fault := f.text(r, FieldAmount)
		return fault
	}
	if f.amount.Form == AmountUnits {
		return f.unitsShape(r)
	}
	if fault := f.noValue(r, p, m); fault != nil {
		return fault
	}
	reason := ""
	switch {
	case f.amount.Form == AmountText:
		return amountTextShape(p.name, m)
	case m.kind == inexact:
		reason = reasonFloat
	case f.amount.Text && (!m.isString() || m.kind == exact): // a decimal has a scale of its own
		reason = reasonNotTextual
	case f.amount.Form == AmountNumber && m.kind == exact: // a decimal type of the schema
	case !f.amount.Text && !m.isNumber():
		reason = reasonNotNumber
	}
	if reason != "" {
		return malformed(p.name, reason)
	}
	return nil
}

// amountTextShape accepts only a text. It refuses a JSON number, because the producer may have
// computed the number as a float.
func amountTextShape(name string, m *value) *Fault {
	switch {
	case m.isNumber(), m.kind == inexact:
		return &Fault{Class: MalformedPayload, Field: name, Reason: "is a number instead of a decimal string", ByProducer: true}
	case !m.isString():
		return malformed(name, reasonNotString)
	}
	return nil
}

// unitsShape checks that units or nanos are present and that they can be integers. The units may be
// a text, because Protobuf's JSON encoding writes 64-bit integers as text.
func (f *decoder) unitsShape(r *reading) *Fault {
	units, nanos := &r.found[FieldAmount], &r.found[memberNanos]
	name, nanosName := f.places[FieldAmount].name, f.places[memberNanos].name
	switch {
	case units.absent() && nanos.absent():
		return f.places[FieldAmount].missingValue(units)
	case units.isNull():
		return malformed(name, reasonNull)
	case nanos.isNull():
		return malformed(nanosName, reasonNull)
	case units.kind == inexact:
		return malformed(name, reasonFloat)
	case nanos.kind == inexact:
		return malformed(nanosName, reasonFloat)
	case !units.absent() && !units.isNumber() && !units.isString():
		return malformed(name, reasonNotNumber)
	case !nanos.absent() && !nanos.isNumber():
		return malformed(nanosName, reasonNotNumber)
	}
	return nil
}

// readAmount returns the amount in minor units of c. It is called after amountShape has checked the
// type.
func (f *decoder) readAmount(r *reading, c Currency) (int64, *Fault) {
	if !f.declaresAmount() && r.signed == nil {
		_, text, fault := f.text(r, FieldAmount)
		if fault != nil {
			return 0, fault
		}
		minor, err := ParseAmount(string(text), c)
		if err != nil {
			return 0, f.invalidAmount(FieldAmount, err)
		}
		return minor, nil
	}
	if !r.numberRead {
		if fault := f.readNumber(r); fault != nil {
			return 0, fault
		}
	}
	minor, err := r.number.minor(c)
	if err == nil {
		err = r.number.checkSign(r.signed)
	}
	if err != nil {
		return 0, f.invalidAmount(FieldAmount, err)
	}
	return minor, nil
}

func (f *decoder) invalidAmount(field Field, err error) *Fault {
	return &Fault{Class: InvalidAmount, Field: f.places[field].name, Reason: err.Error(), ByProducer: true}
}

// readSign sets the event's type, which depends on the sign of the amount. If there is no type for
// this sign, or if the amount is invalid, readSign returns no fault, because other faults are
// reported first. It then sets the type to FundsCredited, so that readData checks the amount and
// returns the fault. TypeName keeps the producer's name of the type. For a custom projection,
// readSign returns the fault, because readData is not called.
func (f *decoder) readSign(r *reading, ev *Event, signed *SignedType) *Fault {
	r.signed = signed
	kind, fault := f.signedType(r, signed)
	if kind == Unknown {
		if f.types.custom != nil {
			return fault
		}
		ev.Type = TypeNamed("FundsCredited")
		return nil
	}
	named := f.types.nameOf(kind, ev.TypeName)
	ev.Type, ev.TypeName = named.kind, named.name
	return nil
}

// signedType returns the type for the sign of the amount. If there is no such type, it returns
// Unknown and a fault.
func (f *decoder) signedType(r *reading, signed *SignedType) (Type, *Fault) {
	if fault := firstFault(f.dataFault(r), f.amountShape(r)); fault != nil {
		return Unknown, fault
	}
	if fault := f.readNumber(r); fault != nil {
		return Unknown, fault
	}
	kind := signed.forSign(&r.number)
	if kind == Unknown {
		return Unknown, f.invalidAmount(FieldAmount, r.number.checkSign(signed))
	}
	r.numberRead = f.amountLasts(r)
	return kind, nil
}

// amountLasts reports whether the digits of the amount are certainly a part of the document. If
// they are not, the next text that is unescaped may overwrite the digits.
func (f *decoder) amountLasts(r *reading) bool {
	m := &r.found[FieldAmount]
	return f.places[FieldAmount].kind == inDocument && (m.verbatim || bytes.IndexByte(m.raw, '\\') < 0)
}

// forSign returns the type for the sign of the amount n.
func (s *SignedType) forSign(n *decimal) Type {
	switch {
	case n.isZero():
		return s.Zero
	case n.negative:
		return s.Negative
	}
	return s.Positive
}

// decimal is an exact number. Its digits are those of the field integer, followed by those of the
// field fraction. The field scale says how many of all these digits are after the decimal point.
type decimal struct {
	negative          bool
	integer, fraction []byte
	scale             int  // byCurrency means the number of decimals of the currency
	padded            bool // the number may end with more zeros than the currency has decimals
}

const byCurrency = -1

func (d *decimal) isZero() bool { return isAll('0', d.integer) && isAll('0', d.fraction) }

// checkSign returns an error if there is no type for the sign of the amount. If the types do not
// depend on the sign, zero and negative amounts are an error.
func (d *decimal) checkSign(signed *SignedType) error {
	switch {
	case signed == nil && (d.negative || d.isZero()):
		return errAmountNotAbove0
	case signed == nil || signed.forSign(d) != Unknown:
		return nil
	case d.isZero():
		return errAmountZero
	case d.negative:
		return errAmountNegative
	}
	return errAmountPositive
}

// minor returns the amount without its sign, in minor units of c.
func (d *decimal) minor(c Currency) (int64, error) {
	whole, fraction := d.integer, d.fraction
	more := 0
	if d.scale != byCurrency {
		more = d.scale - c.Digits()
	}
	for ; more > 0; more-- {
		last := &fraction
		if len(fraction) == 0 {
			last = &whole
		}
		switch n := len(*last); {
		case !d.padded:
			return 0, ErrPrecision
		case n == 0: // all digits were zeros
		case (*last)[n-1] != '0':
			return 0, ErrPrecision
		default:
			*last = (*last)[:n-1]
		}
	}
	n, fits := appendDigits(0, string(whole))
	if fits && len(fraction) > 0 {
		n, fits = appendDigits(n, string(fraction))
	}
	if fits && more < 0 {
		n, fits = appendDigits(n, "000000"[:-more])
	}
	if !fits {
		return 0, errAmountRange
	}
	return n, nil
}

// readNumber sets r.number to the amount. It is called after amountShape has checked the type.
func (f *decoder) readNumber(r *reading) *Fault {
	if f.amount.Form == AmountUnits {
		return f.readUnits(r)
	}
	text := r.found[FieldAmount].raw
	if m := &r.found[FieldAmount]; f.places[FieldAmount].kind != inDocument || m.isString() {
		var fault *Fault
		if _, text, fault = f.text(r, FieldAmount); fault != nil {
			return fault
		}
	}
	if err := r.number.parse(text, &f.amount); err != nil {
		return f.invalidAmount(FieldAmount, err)
	}
	return nil
}

// parse reads an amount of any form except AmountUnits.
func (d *decimal) parse(text []byte, s *AmountShape) error {
	d.integer, d.fraction, d.scale = text, nil, byCurrency
	if d.negative = len(text) > 0 && text[0] == '-'; d.negative {
		d.integer = text[1:]
	}
	d.padded = s.DropZeros || s.Form == AmountMinor || s.Form == AmountScaled
	reason, hasPoint := errAmountInteger, false
	switch s.Form {
	case AmountMinor:
	case AmountScaled:
		d.scale = s.Scale
	case AmountText, AmountNumber, AmountUnits:
		d.integer, d.fraction, hasPoint = bytes.Cut(d.integer, []byte("."))
		d.scale, reason = len(d.fraction), errAmountForm
	}
	switch {
	case !isPlainDigits(d.integer), hasPoint && !isDigits(d.fraction):
		return reason
	case d.negative && d.isZero():
		return errNegativeZero
	}
	return nil
}

// readUnits sets r.number to the sum of units and nanos. If one of them is absent, its value is 0.
func (f *decoder) readUnits(r *reading) *Fault {
	var units, nanos decimal
	if err := units.parseInteger(r, &r.found[FieldAmount]); err != nil {
		return f.invalidAmount(FieldAmount, err)
	}
	if err := nanos.parseInteger(r, &r.found[memberNanos]); err != nil {
		return f.invalidAmount(memberNanos, err)
	}
	switch {
	case len(nanos.integer) > nanoDigits:
		return f.invalidAmount(memberNanos, errNanos)
	case units.negative != nanos.negative && !units.isZero() && !nanos.isZero():
		return f.invalidAmount(memberNanos, errNanosSign)
	}
	value, _ := strconv.ParseInt(string(nanos.integer), 10, 64)
	fraction := strconv.AppendInt(make([]byte, 0, nanoDigits+1), value+1_000_000_000, 10)[1:]
	r.number = decimal{negative: units.negative || nanos.negative, integer: units.integer, fraction: fraction, scale: nanoDigits, padded: true}
	return nil
}

const nanoDigits = 9

// parseInteger reads a value that is a number or a text. An absent value is 0.
func (d *decimal) parseInteger(r *reading, m *value) error {
	text := []byte("0")
	if !m.absent() {
		text = r.text(m)
	}
	return d.parse(text, &AmountShape{Form: AmountMinor})
}
