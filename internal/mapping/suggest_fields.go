package mapping

import (
	"regexp"
	"strings"
	"time"

	"projector/projection/event"
)

func (w *suggesting) field(field event.Field, p *sample) {
	path, alone := p.source()
	if field == event.FieldAmount || field == event.FieldCurrency {
		begun := *p
		begun.path = w.within(p.path)
		path, alone = begun.source()
		if w.data != "" && begun.path == p.path {
			w.decide("%s: %s is an attribute of the CloudEvent, and the path of %s begins in its data. Its producer has to write it there", field, p.path, field)
		}
	}
	switch isNumber := p.hasKind('0'); {
	case field == event.FieldAmount:
		w.amount(path, alone, p)
	case field == event.FieldEventID && !guesses[0].isNamed(p.path):
		w.line("  eventId: %s", p.part())
		w.decide("eventId: %s is different in each record. Is it the event's id?", p.path)
	case field == event.FieldOccurredAt:
		w.time(path, alone, p)
	case field == event.FieldVersion && !isNumber:
		w.line("  version: {%s, type: text}", path)
	case field == event.FieldVersion:
		w.line("  version: %s", alone)
		w.decide("version: does it rise by 1 with each event of an account, and where does it begin (--first-version)?")
	case field == event.FieldCurrency:
		w.currency(path, alone, p)
	case isNumber:
		w.line("  %s: {%s, type: integer}", field, path)
	default:
		w.line("  %s: %s", field, alone)
	}
}

// seconds matches seconds since 1970, from the year 1973 to 2286, which may have a fraction.
var seconds = regexp.MustCompile(`^\d{9,10}(\.\d+)?$`)

func (w *suggesting) time(path, alone string, p *sample) {
	switch {
	case p.hasKind('0') && !p.whole && p.each(seconds.MatchString):
		w.line("  occurredAt: {%s, unit: s.fraction}", path)
	case p.hasKind('0') && !p.whole:
		w.line("  occurredAt: %s", alone)
		w.decide("occurredAt: not all are integers, or seconds with a point. Its producer has to write that, or RFC 3339")
	case p.hasKind('0'):
		unit := map[bool]string{true: "s", false: "ms"}[p.digits <= 11]
		if p.digits > 14 {
			unit = map[bool]string{true: "us", false: "ns"}[p.digits <= 17]
		}
		w.line("  occurredAt: {%s, unit: %s}", path, unit)
		w.decide("occurredAt: by its number of digits the unit may be %s", unit)
		if plainName(p.path) == "tsms" {
			w.decide("occurredAt: a connector read the row at %s. When did the event happen?", p.path)
		}
	case p.each(func(text string) bool { return len(text) == len(time.DateOnly) }):
		w.line("  occurredAt: {%s, unit: date}", path)
	default:
		w.line("  occurredAt: %s", alone)
		if !p.each(event.IsRFC3339) {
			w.decide("occurredAt: not all are RFC 3339 with an offset, such as 2026-01-01T00:00:00Z or …+01:00. Its producer has to write it")
		}
	}
}

func (w *suggesting) currency(path, alone string, p *sample) {
	written, shape := event.WrittenText, ""
	if !p.hasKind('"') {
		written, shape = event.WrittenInteger, ", type: integer"
	}
	if p.each(func(text string) bool { _, is := event.CurrencyByNumber([]byte(text), written); return is }) {
		w.line("  currency: {%s, code: numeric%s}", path, shape)
		return
	}
	code := anyOf(p.texts)
	if isLower := code == strings.ToLower(code) && code != strings.ToUpper(code); isLower {
		w.line("  currency: {%s, case: lower}", path)
	} else {
		w.line("  currency: %s", alone)
	}
	if !p.each(func(text string) bool { _, is := event.CurrencyByCode(strings.ToUpper(text)); return is }) {
		w.decide("currency: not all are codes of ISO 4217 such as EUR, which each credit and debit needs")
	}
}

// decimal matches decimal numbers as text.
var decimal = regexp.MustCompile(`^-?\d+(\.\d+)?$`)

func (w *suggesting) amount(path, alone string, p *sample) {
	nanos := w.nanosOf(p)
	switch {
	case nanos != nil:
		w.taken[nanos.path] = true
		w.line("  amount: {units: %s, nanos: %s}", quoteYAML(w.within(p.path)), quoteYAML(w.within(nanos.path)))
	case p.hasKind('0') && p.whole:
		w.line("  amount: {%s, unit: minor}", path)
		w.decide("amount: it is an integer. Is it minor units (unit: minor), another fixed scale (scale: N), or major units (type: number)?")
	case p.hasKind('0'):
		w.line("  amount: {%s, type: number%s}", path, p.zeros())
		w.decide("amount: it is a JSON number; does its producer write all digits, or a float?")
	default:
		if zeros := p.zeros(); zeros != "" {
			alone = "{" + path + zeros + "}"
		}
		w.line("  amount: %s", alone)
		switch {
		case !p.each(decimal.MatchString):
			w.decide("amount: not all are decimal numbers such as 10.25. If Debezium wrote Base64, set decimal.handling.mode=string in its connector")
		case !strings.Contains(anyOf(p.texts), "."):
			w.decide("amount: it is a text without a point. Is 1050 major units (as it is here), or minor units ({unit: minor, type: text})?")
		}
	}
	if p.isNegative() {
		w.decide("amount: there are negative ones; the types below go by the sign")
	}
}

// zeros returns how a mapping says that zeros at the end of an amount are dropped. It is empty if no
// sample needs it. It does no harm for a currency with three digits.
func (p *sample) zeros() string {
	for text := range p.texts {
		if _, fraction, _ := strings.Cut(text, "."); len(fraction) > 2 && strings.HasSuffix(fraction, "0") {
			return ", zeros: dropped"
		}
	}
	return ""
}

// within returns a path as it begins in the object w.data.
func (w *suggesting) within(path string) string {
	if w.data == "" {
		return path
	}
	return strings.TrimPrefix(path, w.data+".")
}

// nanosOf returns the billionths of an amount that is written as whole units and billionths, or nil.
func (w *suggesting) nanosOf(units *sample) *sample {
	if plainName(units.path) != "units" || units.outer {
		return nil
	}
	for path, p := range w.values {
		if plainName(path) == "nanos" && parentOf(path) == parentOf(units.path) && !p.outer && p.hasKind('0') {
			return p
		}
	}
	return nil
}

// each reports whether all stored texts of the path are as the function is wants. Null is left out.
func (p *sample) each(is func(text string) bool) bool {
	for text := range p.texts {
		if isNull := text == "null" && p.kinds['n'] > 0; !isNull && !is(text) {
			return false
		}
	}
	return true
}

// isNegative reports whether at least one of the sample's numbers is negative.
func (p *sample) isNegative() bool {
	for text := range p.texts {
		if strings.HasPrefix(text, "-") {
			return true
		}
	}
	return false
}
