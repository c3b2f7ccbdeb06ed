package mapping

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

// addCurrency sets how currency codes are written.
func (m *Mapping) addCurrency(t *fieldTable) error {
	numeric := t.code != nil && t.code.Value == "numeric"
	switch {
	case numeric:
		m.Currency = event.CurrencyNumeric
	case t.letters != nil && t.letters.Value == "lower":
		m.Currency = event.CurrencyLower
	}
	switch {
	case numeric && t.letters != nil:
		return errorAt(t.letters, "%s: case is for letters; leave it out, or code: numeric", t.name)
	case numeric && t.constant != nil:
		return errorAt(t.constant, "%s: constant: must be letters; leave out code: numeric", t.name)
	case !numeric && t.written != nil:
		return errorAt(t.written, "%s: type: an integer is a numeric code: add code: numeric", t.name)
	case t.constant != nil:
		return m.checkCode(t)
	}
	return nil
}

// checkCode checks a constant currency. If the mapping says that events have lower-case codes, the
// constant must be in lower case, otherwise in upper case.
func (m *Mapping) checkCode(t *fieldTable) error {
	code, written := t.constant.Value, strings.ToUpper(t.constant.Value)
	if _, known := event.CurrencyByCode(written); !known {
		return errorAt(t.constant, "%s: constant: %q is no code of ISO 4217", t.name, code)
	}
	if m.Currency == event.CurrencyLower {
		written = strings.ToLower(code)
	}
	if code != written {
		return errorAt(t.constant, "%s: constant: must be %s: case lower is for codes in small letters", t.name, written)
	}
	return nil
}

func (m *Mapping) addAmount(t *fieldTable) error {
	if t.units != nil || t.nanos != nil {
		return m.addUnits(t)
	}
	written := ""
	if t.written != nil {
		written = t.written.Value
	}
	shape := &m.Amount
	shape.DropZeros = t.zeros != nil && t.zeros.Value == "dropped"
	switch {
	case t.zeros != nil && (t.scale != nil || t.unit != nil && t.unit.Value == "minor"):
		return errorAt(t.zeros, "%s: zeros is for a decimal, and not for an integer; leave it out", t.name)
	case t.scale != nil && t.unit != nil:
		return errorAt(t.scale, "%s: scale says what unit: %s says; give one of the two", t.name, t.unit.Value)
	case t.scale != nil:
		n, err := strconv.Atoi(t.scale.Value)
		// A zero before the number is refused, because YAML 1.1 reads 010 as 8.
		if err != nil || n < 0 || n > event.MostScale || t.scale.Tag != "!!int" || t.scale.Value != strconv.Itoa(n) {
			return errorAt(t.scale, "%s: scale: must be a number of decimals from 0 to %d, such as 4", t.name, event.MostScale)
		}
		shape.Form, shape.Scale = event.AmountScaled, n
	case t.unit != nil && t.unit.Value == "minor":
		shape.Form = event.AmountMinor
	case written == "number":
		shape.Form = event.AmountNumber
		return nil
	case written == "" || written == "text":
		return nil
	case written == "integer":
		return errorAt(t.written, "%s: type: an integer needs its unit: add unit: minor, or scale", t.name)
	default:
		return errorAt(t.written, "%s: type: must be text or number, or integer with unit: minor or with scale", t.name)
	}
	switch written {
	case "", "integer":
	case "text":
		shape.Text = true
	default:
		return errorAt(t.written, "%s: type: must be integer or text with unit: minor or with scale", t.name)
	}
	return nil
}

// addUnits sets the paths of an amount that is written as whole units and billionths.
func (m *Mapping) addUnits(t *fieldTable) error {
	for _, other := range []*yaml.Node{t.unit, t.scale, t.zeros, t.written} {
		if other != nil {
			return errorAt(other, "%s: units and nanos have no unit, scale, zeros or type", t.name)
		}
	}
	for _, pair := range [][2]*yaml.Node{{t.units, t.nanos}, {t.nanos, t.units}} {
		if pair[0] == nil {
			return errorAt(pair[1], "%s: units and nanos belong together", t.name)
		}
	}
	if t.place.Path != nil {
		return errorAt(t.units, "%s: units and nanos are paths themselves; leave out path", t.name)
	}
	var err error
	if t.place.Path, err = readPath(t.name+": units", t.units, false); err != nil {
		return err
	}
	m.Amount.Form = event.AmountUnits
	m.Amount.Nanos, err = readPath(t.name+": nanos", t.nanos, false)
	return err
}
