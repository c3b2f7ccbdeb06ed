// Package mapping reads the file that says how other people's events are named: a
// YAML or JSON document of two tables.
//
//	eventTypes:            # their name: the contract's, or ignored
//	  MoneyDeposited: FundsCredited
//	fields:                # the contract's name: where it stands
//	  version: meta.seq    # a member of the JSON document, names joined by points
//	  amount: [the.amount] # the same as a list, for names that have points
//	  accountId: {key: true}
//	  correlationId: {header: x-trace-id}
//	  occurredAt: {path: meta.ts, unit: ms}
//
// What the file does not name stays as the contract has it. Every error names the
// line it is about.
package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"projector/projection/event"
)

// Mapping is a file that was read.
type Mapping struct {
	event.Mapping
	lines map[event.Field]int
}

// Parse reads a mapping. Its error has a line of text for each mistake, which begins with the
// line of the file, "line 3: …".
func Parse(text []byte) (*Mapping, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, at(1, "the file is empty")
	case err != nil:
		return nil, syntaxError(err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, at(max(second.Line, 1), "a second document follows the first")
	}
	m := &Mapping{
		Mapping: event.Mapping{Types: map[string]event.Type{}, Fields: map[event.Field]event.FieldPath{}},
		lines:   map[event.Field]int{},
	}
	err := eachMember(document.Content[0], "the file", func(key, value *yaml.Node) error {
		switch key.Value {
		case "eventTypes":
			return eachMember(value, key.Value, m.addType)
		case "fields":
			return eachMember(value, key.Value, m.addField)
		}
		return at(key.Line, "%q is unknown; use eventTypes and fields", key.Value)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Locate names the lines that an error of event.New is about.
func (m *Mapping) Locate(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var located []error
		for _, one := range joined.Unwrap() {
			located = append(located, m.Locate(one))
		}
		return errors.Join(located...)
	}
	var conflict *event.MappingError
	if !errors.As(err, &conflict) {
		return err
	}
	for _, field := range []event.Field{conflict.Field, event.FieldData} {
		if line, ok := m.lines[field]; ok {
			return at(line, "%s", conflict.Error())
		}
	}
	return err
}

// at is an error about a line.
func at(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...))
}

// syntaxError is what the parser says, which names the line itself.
func syntaxError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if !strings.HasPrefix(text, "line ") {
		text = "line 1: " + text
	}
	return errors.New(text)
}

// eachMember calls read for every member of a table, and joins the errors; name is what the
// table is called.
func eachMember(table *yaml.Node, name string, read func(key, value *yaml.Node) error) error {
	if table.Kind != yaml.MappingNode {
		return at(table.Line, "%s is not a table of names and values", name)
	}
	lines := map[string]int{}
	var mistakes []error
	for i := 0; i+1 < len(table.Content); i += 2 {
		key, value := table.Content[i], table.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Value == "" || key.Tag == "!!merge" {
			mistakes = append(mistakes, at(key.Line, "%s: a name must be text", name))
			continue
		}
		if first, twice := lines[key.Value]; twice {
			mistakes = append(mistakes, at(key.Line, "%s: %q is there twice, first in line %d", name, key.Value, first))
			continue
		}
		lines[key.Value] = key.Line
		mistakes = append(mistakes, read(key, value))
	}
	return errors.Join(mistakes...)
}

// isText reports whether a node is one text; a number is the text of its digits.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag != "!!null" && n.Value != ""
}

// ignored is the meaning of an event type that only advances the version.
const ignored = "ignored"

func (m *Mapping) addType(key, value *yaml.Node) error {
	kind := event.TypeNamed(value.Value)
	if value.Value == ignored {
		kind = event.Ignorable
	}
	if value.Kind != yaml.ScalarNode || kind == event.Unknown {
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
		m.lines[field] = key.Line
		if shape := m.shapeOf(field, value); shape != nil {
			return m.addShaped(field, value, shape)
		}
		place, err := readPath(key.Value, value)
		if err != nil {
			return err
		}
		m.Fields[field] = place
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
