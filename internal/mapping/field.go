package mapping

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

// readPath reads where a field stands: a path as text or as a list of names, or a
// table that names a header or the key. The path of data may be empty.
func readPath(field string, n *yaml.Node) (event.FieldPath, error) {
	switch {
	case isText(n):
		return event.FieldPath{Path: strings.Split(n.Value, ".")}, nil
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && field == event.FieldData.String():
		return event.FieldPath{}, nil
	case n.Kind == yaml.SequenceNode:
		return readNames(field, n)
	case n.Kind == yaml.MappingNode:
		return readSource(field, n)
	}
	return event.FieldPath{}, at(n.Line, "fields: %s: must be a path such as meta.seq, a list of names, {header: NAME} or {key: true}", field)
}

func readNames(field string, n *yaml.Node) (event.FieldPath, error) {
	var p event.FieldPath
	for _, name := range n.Content {
		if !isText(name) {
			return p, at(name.Line, "fields: %s: a name in the list must be text", field)
		}
		p.Path = append(p.Path, name.Value)
	}
	return p, nil
}

func readSource(field string, n *yaml.Node) (event.FieldPath, error) {
	var p event.FieldPath
	err := eachMember(n, "fields: "+field, func(key, value *yaml.Node) error {
		known, err := addSource(&p, field, key, value)
		if !known {
			return at(key.Line, "fields: %s: must be {path: PATH}, {header: NAME} or {key: true}", field)
		}
		return err
	})
	return p, err
}

// addSource reads a member of a table that says where a field stands; false: it says
// something else.
func addSource(p *event.FieldPath, field string, key, value *yaml.Node) (known bool, err error) {
	switch {
	case key.Value == "header" && isText(value):
		p.Header = value.Value
	case key.Value == "key" && value.Tag == "!!bool" && value.Value == "true":
		p.Key = true
	case key.Value == "path" && value.Kind != yaml.MappingNode:
		var inner event.FieldPath
		inner, err = readPath(field, value)
		p.Path = inner.Path
	default:
		return false, nil
	}
	return true, err
}

// shape reads a member of a table that says how a field is written; false: it says
// something else.
type shape func(key, value *yaml.Node) (known bool, err error)

// shapeOf returns what reads how a field is written; nil when its value says only where
// it stands.
func (m *Mapping) shapeOf(field event.Field, value *yaml.Node) shape {
	if value.Kind == yaml.MappingNode && field == event.FieldOccurredAt {
		return m.addTime
	}
	return nil
}

// addShaped reads a table of where a field stands and how it is written. Without a place
// it stands where the format has it.
func (m *Mapping) addShaped(field event.Field, table *yaml.Node, add shape) error {
	var p event.FieldPath
	placed := false
	err := eachMember(table, "fields: "+field.String(), func(key, value *yaml.Node) error {
		known, err := add(key, value)
		if !known {
			known, err = addSource(&p, field.String(), key, value)
			placed = placed || known
		}
		if !known {
			return at(key.Line, "fields: %s: %q is unknown or has no such value; use %s", field, key.Value, shapeHelp[field])
		}
		return err
	})
	if placed || len(table.Content) == 0 {
		m.Fields[field] = p
	}
	return err
}

// shapeHelp is what a table of a field may say.
var shapeHelp = map[event.Field]string{
	event.FieldOccurredAt: "path, header or key, and unit: rfc3339, s, ms, us, ns or date",
}

func (m *Mapping) addTime(key, value *yaml.Node) (known bool, err error) {
	if key.Value != "unit" || !isText(value) {
		return false, nil
	}
	m.Time, known = event.TimeUnitNamed(value.Value)
	return known, nil
}
