package mapping

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

// ignored is the meaning of an event type that only advances the version.
const ignored = "ignored"

// meanings are what an event type can be mapped to, by name.
func meanings() map[string]event.Type {
	known := map[string]event.Type{ignored: event.Ignorable}
	for _, t := range event.NamedTypes() {
		known[t.Name()] = t
	}
	return known
}

func (m *Mapping) addType(key, value *yaml.Node) error {
	kind, known := meanings()[value.Value]
	if value.Kind != yaml.ScalarNode || !known {
		return at(value.Line, "eventTypes: %s: must be %s or %s", key.Value, typeList(), ignored)
	}
	m.Types[key.Value] = kind
	return nil
}

func typeList() string {
	var names []string
	for _, t := range event.NamedTypes() {
		names = append(names, t.Name())
	}
	return strings.Join(names, ", ")
}

func (m *Mapping) addField(key, value *yaml.Node) error {
	for _, field := range event.Fields() {
		if field.String() != key.Value {
			continue
		}
		place, err := readPlace(key.Value, value)
		if err != nil {
			return err
		}
		m.Places[field], m.lines[field] = place, key.Line
		return nil
	}
	return at(key.Line, "fields: %q is unknown; use %s", key.Value, fieldList())
}

func fieldList() string {
	names := make([]string, 0, len(event.Fields()))
	for _, field := range event.Fields() {
		names = append(names, field.String())
	}
	return strings.Join(names, ", ")
}

// readPlace reads where a field stands: a path as text or as a list of names, or a
// table that names a header or the key. The path of data may be empty.
func readPlace(field string, n *yaml.Node) (event.Place, error) {
	switch {
	case isText(n):
		return event.Place{Path: strings.Split(n.Value, ".")}, nil
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && field == event.FieldData.String():
		return event.Place{}, nil
	case n.Kind == yaml.SequenceNode:
		return readNames(field, n)
	case n.Kind == yaml.MappingNode:
		return readSource(field, n)
	}
	return event.Place{}, at(n.Line, "fields: %s: must be a path such as meta.seq, a list of names, {header: NAME} or {key: true}", field)
}

func readNames(field string, n *yaml.Node) (event.Place, error) {
	var p event.Place
	for _, name := range n.Content {
		if !isText(name) {
			return p, at(name.Line, "fields: %s: a name in the list must be text", field)
		}
		p.Path = append(p.Path, name.Value)
	}
	return p, nil
}

func readSource(field string, n *yaml.Node) (event.Place, error) {
	var p event.Place
	err := eachMember(n, "fields: "+field, func(key, value *yaml.Node) error {
		switch {
		case key.Value == "header" && isText(value):
			p.Header = value.Value
		case key.Value == "key" && value.Tag == "!!bool" && value.Value == "true":
			p.Key = true
		default:
			return at(key.Line, "fields: %s: must be {header: NAME} or {key: true}", field)
		}
		return nil
	})
	return p, err
}
