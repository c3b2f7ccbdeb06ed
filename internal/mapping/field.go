package mapping

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

func (m *Mapping) addField(key, value *yaml.Node) error {
	for _, field := range event.Fields() {
		if field.String() != key.Value {
			continue
		}
		m.nodes[field] = key
		if value.Kind == yaml.MappingNode {
			return m.addTable(field, value)
		}
		path, err := readPath("fields: "+key.Value, value, field == event.FieldData)
		if err != nil {
			return err
		}
		m.Fields[field] = event.FieldPath{Path: path}
		return nil
	}
	return errorAt(key, "fields: %q is unknown; use %s", key.Value, listOf(event.Fields(), event.Field.String))
}

// readPath reads a path, which is a text or a list of names. The parameter name is the name of the
// field in errors.
func readPath(name string, n *yaml.Node, mayBeEmpty bool) ([]string, error) {
	switch {
	case isText(n):
		return strings.Split(n.Value, "."), nil
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && mayBeEmpty:
		return nil, nil
	case n.Kind == yaml.SequenceNode:
		path := []string{}
		for _, inner := range n.Content {
			if !isText(inner) {
				return nil, errorAt(inner, "%s: a name in the list must be text", name)
			}
			path = append(path, inner.Value)
		}
		return path, nil
	}
	return nil, errorAt(n, "%s: must be a path such as meta.seq, a list of names, or a table such as {header: NAME}", name)
}

type fieldTable struct {
	field  event.Field // for a part, the field that is joined
	isPart bool
	name   string
	place  event.FieldPath
	placed bool

	units, nanos, unit, scale, zeros, written, constant *yaml.Node
}

// addTable reads the table of a field. If the table does not say where the field is, the field is
// read from the place at which the format expects it.
func (m *Mapping) addTable(field event.Field, table *yaml.Node) error {
	t := &fieldTable{field: field, name: "fields: " + field.String()}
	if err := eachMember(table, t.name, m.member(t)); err != nil {
		return err
	}
	if field == event.FieldCurrency && t.constant != nil {
		if err := m.checkCode(t); err != nil {
			return err
		}
	}
	if field == event.FieldAmount {
		if err := m.addAmount(t); err != nil {
			return err
		}
	} else if err := t.setWritten(); err != nil {
		return err
	}
	if t.placed || t.place.Written != event.WrittenUsually || len(table.Content) == 0 {
		m.Fields[field] = t.place
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
	if m.LowerCurrency {
		written = strings.ToLower(code)
	}
	if code != written {
		return errorAt(t.constant, "%s: constant: must be %s: case lower is for codes in small letters", t.name, written)
	}
	return nil
}

// member returns the function that reads a member of a field's table.
func (m *Mapping) member(t *fieldTable) func(key, value *yaml.Node) error {
	return func(key, value *yaml.Node) error {
		known, err := t.addSource(key, value)
		if known {
			t.placed = true
			return err
		}
		if m.addShape(t, key, value) {
			return nil
		}
		return errorAt(key, "%s: %q is unknown or has no such value; use %s", t.name, key.Value, t.help())
	}
}

// addSource reads a member that says where the field is in a message. known is false for other
// members.
func (t *fieldTable) addSource(key, value *yaml.Node) (known bool, err error) {
	p := &t.place
	name := t.name + ": " + key.Value
	switch {
	case key.Value == "path" && value.Kind != yaml.MappingNode:
		p.Path, err = readPath(name, value, t.field == event.FieldData)
	case t.field == event.FieldData:
		return false, nil
	case key.Value == "header" && isText(value):
		p.Header = value.Value
	case key.Value == "key" && isTrue(value):
		p.Key = true
	case key.Value == "record" && isTrue(value) && t.field == event.FieldEventType:
		p.Record = true
	case key.Value == "outer" && value.Kind != yaml.MappingNode:
		p.Outer, err = readPath(name, value, false)
	case key.Value == "constant" && isText(value) && t.mayBeConstant():
		p.Constant = value.Value
		t.constant = value
	case key.Value == "optional" && isTrue(value) && t.isPart && t.field == event.FieldEventType:
		p.Optional = true
	case key.Value == "join" && value.Kind == yaml.SequenceNode && t.mayBeJoined():
		err = t.addParts(value)
	case key.Value == "with" && isText(value) && len(value.Value) == 1 && t.mayBeJoined():
		p.Separator = value.Value[0]
	default:
		return false, nil
	}
	return true, err
}

func isTrue(n *yaml.Node) bool { return n.Tag == "!!bool" && n.Value == "true" }

func (t *fieldTable) mayBeConstant() bool {
	return t.isPart || t.field == event.FieldEventType || t.field == event.FieldCurrency
}

func (t *fieldTable) mayBeJoined() bool {
	switch t.field {
	case event.FieldEventID, event.FieldAccountID, event.FieldEventType:
		return !t.isPart
	default:
		return false
	}
}

// addParts reads the parts of a field whose value is joined from several values.
func (t *fieldTable) addParts(list *yaml.Node) error {
	t.place.Join = []event.FieldPath{}
	for i, n := range list.Content {
		part := &fieldTable{field: t.field, isPart: true, name: fmt.Sprintf("%s: part %d", t.name, i+1)}
		if n.Kind == yaml.MappingNode {
			if err := eachMember(n, part.name, new(Mapping).member(part)); err != nil {
				return err
			}
			if err := part.setWritten(); err != nil {
				return err
			}
		} else {
			var err error
			if part.place.Path, err = readPath(part.name, n, false); err != nil {
				return err
			}
		}
		t.place.Join = append(t.place.Join, part.place)
	}
	return nil
}

// addShape reads a member that says how the field is written. known is false for other members.
func (m *Mapping) addShape(t *fieldTable, key, value *yaml.Node) (known bool) {
	if value.Kind == yaml.MappingNode {
		return false
	}
	isAmount := t.field == event.FieldAmount
	switch {
	case isAmount && key.Value == "units":
		t.units, t.placed = value, true
	case isAmount && key.Value == "nanos":
		t.nanos = value
	case isAmount && key.Value == "scale":
		t.scale = value
	case isAmount && key.Value == "zeros":
		t.zeros = value
		return value.Value == "dropped" || value.Value == "refused"
	case value.Kind != yaml.ScalarNode:
		return false
	case t.field == event.FieldOccurredAt && key.Value == "unit":
		m.Time, known = event.TimeUnitNamed(value.Value)
		return known
	case t.field == event.FieldCurrency && key.Value == "case":
		m.LowerCurrency = value.Value == "lower"
		return m.LowerCurrency || value.Value == "upper"
	case isAmount && key.Value == "unit":
		t.unit = value
		return value.Value == "minor" || value.Value == "major"
	case key.Value == "type" && value.Value != "" && t.field != event.FieldData && t.field != event.FieldOccurredAt && t.field != event.FieldCurrency:
		t.written = value
	default:
		return false
	}
	return true
}

// setWritten sets the type in which a text or a version is written.
func (t *fieldTable) setWritten() error {
	if t.written == nil {
		return nil
	}
	var known bool
	t.place.Written, known = event.WrittenNamed(t.written.Value)
	if !known || t.place.Written == event.WrittenBoolean && t.field != event.FieldEventType && !t.isPart {
		return errorAt(t.written, "%s: type: must be text, integer or, of an event type, boolean", t.name)
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
		if err != nil || n < 0 || n > event.MostScale || t.scale.Tag != "!!int" {
			return errorAt(t.scale, "%s: scale: must be a number of decimals from 0 to %d", t.name, event.MostScale)
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

func (t *fieldTable) help() string {
	const source = "path: PATH, header: NAME, key: true, outer: PATH"
	switch {
	case t.isPart && t.field == event.FieldEventType:
		return source + ", record: true, constant, optional: true, and type: text, integer or boolean"
	case t.isPart:
		return source + ", constant, and type: text or integer"
	case t.field == event.FieldData:
		return "path: PATH"
	case t.field == event.FieldOccurredAt:
		return source + ", and unit: rfc3339, s, s.fraction, ms, us, ns or date"
	case t.field == event.FieldAmount:
		return source + ", unit: minor or major, scale, zeros: refused or dropped, type: text, number or integer, or units and nanos"
	case t.field == event.FieldCurrency:
		return source + ", constant, and case: upper or lower"
	case t.field == event.FieldEventType:
		return source + ", record: true, constant, join and with (one character), and type: text, integer or boolean"
	case t.mayBeJoined():
		return source + ", join and with (one character), and type: text or integer"
	}
	return source + ", and type: text or integer"
}
