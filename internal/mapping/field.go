package mapping

import (
	"fmt"
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

	units, nanos, unit, scale, zeros, written, constant, letters, code *yaml.Node
}

// addTable reads the table of a field. If the table does not say where the field is, the field is
// read from the place at which the format expects it.
func (m *Mapping) addTable(field event.Field, table *yaml.Node) error {
	t := &fieldTable{field: field, name: "fields: " + field.String()}
	if err := eachMember(table, t.name, m.member(t)); err != nil {
		return err
	}
	if field == event.FieldCurrency {
		if err := m.addCurrency(t); err != nil {
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
		t.letters = value
		return value.Value == "lower" || value.Value == "upper"
	case t.field == event.FieldCurrency && key.Value == "code":
		t.code = value
		return value.Value == "numeric" || value.Value == "alphabetic"
	case t.field == event.FieldCurrency && key.Value == "type":
		t.written = value
		return value.Value == "integer"
	case isAmount && key.Value == "unit":
		t.unit = value
		return value.Value == "minor" || value.Value == "major"
	case key.Value == "type" && value.Value != "" && t.field != event.FieldData && t.field != event.FieldOccurredAt:
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
		return source + ", constant, case: upper or lower, code: alphabetic or numeric, and type: integer"
	case t.field == event.FieldEventType:
		return source + ", record: true, constant, join and with (one character), and type: text, integer or boolean"
	case t.mayBeJoined():
		return source + ", join and with (one character), and type: text or integer"
	}
	return source + ", and type: text or integer"
}
